package logstore

import (
	"errors"
	"fmt"
	"strings"

	"deepseek/internal/session"
)

var (
	// ErrNotFound says that no session file is at a path, or no longer.
	ErrNotFound = errors.New("no such session")
	// ErrExists says that a session of this id is there already.
	ErrExists = errors.New("a session of this id exists already")
	// ErrConflict says that the log has moved on since the caller looked.
	ErrConflict = errors.New("the log has moved on")
	// ErrClosed says that the log was closed by its owner.
	ErrClosed = errors.New("the session log is closed")
	// ErrUnverified says that something was to be appended to a log that was
	// not replayed to its end first. It is a bug of the caller.
	ErrUnverified = errors.New("the session log was not replayed before it was appended to")
)

// DamageError says where a session file is damaged. It wraps session.ErrDamaged.
type DamageError struct {
	Path   string
	Line   int   // from 1, the header being line 1; 0 = not known
	Offset int64 // of the line's first byte
	Reason string
}

func (e *DamageError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%v: %s: byte %d: %s", session.ErrDamaged, e.Path, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%v: %s: line %d, byte %d: %s", session.ErrDamaged, e.Path, e.Line, e.Offset, e.Reason)
}

// Unwrap makes it a session.ErrDamaged.
func (*DamageError) Unwrap() error { return session.ErrDamaged }

// UnknownTypeError refuses a file for an event that this build does not know
// and that is not marked as ignorable. It wraps session.ErrTooNew.
type UnknownTypeError struct {
	Path string
	Line int // from 1
	Type string
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("%s: unknown event type %q at line %d, %v?", e.Path, e.Type, e.Line, session.ErrTooNew)
}

// Unwrap makes it a session.ErrTooNew.
func (*UnknownTypeError) Unwrap() error { return session.ErrTooNew }

// WriteError says that the system would not write or sync. The log it comes
// from is failed for good.
type WriteError struct {
	Path string
	Err  error // the system's own
}

func (e *WriteError) Error() string {
	text := e.Err.Error()
	if strings.Contains(text, e.Path) {
		return "cannot write the session log: " + text
	}
	return fmt.Sprintf("cannot write the session log %s: %s", e.Path, text)
}

func (e *WriteError) Unwrap() error { return e.Err }

// BusyError says that another process, or another part of this one, owns the session.
type BusyError struct {
	Path    string
	PID     int    // 0 where no owner said who it is
	Socket  string // "" likewise
	Session string // the id by which the owner is reached: the root's
	// LastPID is, where nobody answered, the process that is known to have owned
	// the session last, if there still is a process of that number; else 0.
	LastPID int
}

func (e *BusyError) Error() string {
	switch {
	case e.PID != 0:
		return fmt.Sprintf("the session %s is in use by process %d", IDOf(e.Path), e.PID)
	case e.LastPID != 0:
		return fmt.Sprintf("the session %s is in use by a process that does not answer", IDOf(e.Path))
	}
	return fmt.Sprintf("the session %s is in use by another process", IDOf(e.Path))
}
