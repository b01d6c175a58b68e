package logstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// How long Own waits for the owner of a locked session to say who it is, and
// how often it looks. A lock that is held for a moment only (by a removal, by
// an owner that is just leaving) is waited out too.
const (
	busyWait = time.Second
	busyLook = 20 * time.Millisecond
)

// Own takes the session file at path: the lock first, then one look through
// the whole file. It changes no byte; a torn tail is left for Repair or the
// first Append. Errors: *BusyError, ErrNotFound, and those of Read.
//
// The caller replays the log before it appends, and closes it.
func (s *Store) Own(ctx context.Context, path string) (*Log, error) {
	path, err := s.resolve(path)
	if err != nil {
		return nil, err
	}
	f, err := s.acquire(ctx, path)
	if err != nil {
		return nil, err
	}
	l, err := s.open(ctx, path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	go l.write()
	return l, nil
}

// resolve makes a path the one under which a file is known to everybody.
func (s *Store) resolve(path string) (string, error) {
	resolved, err := s.fs.Resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNotFound, path)
	}
	return resolved, err
}

// acquire takes the lock of the file that path names.
func (s *Store) acquire(ctx context.Context, path string) (file, error) {
	waiting, cancel := context.WithTimeout(ctx, s.busy)
	defer cancel()
	look := time.NewTicker(busyLook)
	defer look.Stop()
	for {
		f, err := s.fs.OpenLocked(path)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %s", ErrNotFound, path)
		case !errors.Is(err, errLocked):
			return nil, err
		}
		if o, ok := s.LiveOwner(waiting, path); ok {
			return nil, o.Busy(path)
		}
		select {
		case <-look.C:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, unanswered(s.fs, path)
		}
	}
}

// open looks through a locked file.
func (s *Store) open(ctx context.Context, path string, f file) (*Log, error) {
	sc := newScanner(f, path, chunk)
	h, raw, err := sc.header()
	if err != nil {
		return nil, err
	}
	l := newLog(s, path, f)
	l.header, l.headerLine = h, bytes.Clone(raw)
	for {
		if sc.seq%ctxEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		at := sc.offset()
		_, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, firstDamage(f, path, err)
		}
		l.note(sc.seq-1, at)
	}
	l.next, l.end, l.tear = sc.seq, sc.offset(), sc.torn
	l.openEnd, l.torn, l.written = l.end, int(l.tear), l.end
	// A killed owner may have left lines that are not on the disk yet. From
	// here on they count as written, so they must be.
	if err := f.Sync(); err != nil {
		return nil, &WriteError{Path: path, Err: err}
	}
	l.durable, l.durableEnd = l.next, l.end
	return l, nil
}
