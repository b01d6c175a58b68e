package logstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"deepseek/internal/session"
)

// Owner is who owns a session, as the owner file says it. It counts only while
// its socket answers.
type Owner struct {
	PID       int    `json:"pid"`
	Socket    string `json:"socket"`    // path of the control socket
	StartedAt int64  `json:"startedAt"` // ms since the epoch
	Session   string `json:"session"`   // the root's id
}

// Busy is the refusal of what is asked of the log at path, which is the owner's.
func (o Owner) Busy(path string) *BusyError {
	return &BusyError{Path: path, PID: o.PID, Socket: o.Socket, Session: o.Session}
}

// Unanswered is the refusal of what is asked of the log at path, which is in use
// by somebody who does not say who they are.
func Unanswered(path string) *BusyError { return unanswered(osFS{}, path) }

func unanswered(fsys fileSystem, path string) *BusyError {
	busy := &BusyError{Path: path}
	if o, err := readOwner(fsys, path); err == nil && o.PID > 0 {
		if err := syscall.Kill(o.PID, 0); err == nil || errors.Is(err, syscall.EPERM) {
			busy.LastPID = o.PID
		}
	}
	return busy
}

const ownerFileLimit = 16 << 10 // bytes

// ReadOwner reads the owner file of the log at path. ErrNotFound if there is none.
func ReadOwner(path string) (Owner, error) { return readOwner(osFS{}, path) }

func readOwner(fsys fileSystem, path string) (Owner, error) {
	var o Owner
	data, err := readSmall(fsys, OwnerPath(path), ownerFileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return o, fmt.Errorf("%w: %s", ErrNotFound, OwnerPath(path))
	}
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("%s: %w", OwnerPath(path), session.PlainJSON(err))
	}
	return o, nil
}

// LiveOwner is the owner of the log at path whose socket answers, if there is one.
func (s *Store) LiveOwner(ctx context.Context, path string) (Owner, bool) {
	o, err := readOwner(s.fs, path)
	if err != nil || o.PID <= 0 || o.Socket == "" {
		return Owner{}, false // none, or none that could be reached
	}
	return o, s.probe(ctx, o.Socket)
}

// ping asks the control socket for a sign of life: any line in return will do.
func ping(ctx context.Context, socket string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	// An owner that is leaving refuses unasked, and may have hung up before this is written.
	_, _ = conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
	_, err = bufio.NewReader(conn).ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil // a long answer is one too
	}
	stop()
	return errors.Join(err, conn.Close()) == nil
}
