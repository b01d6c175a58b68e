package deepseek

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("the client was closed")
	// ErrRunInProgress says that a run of this client owns the session: runs of one session take turns.
	ErrRunInProgress = errors.New("a run of this session is at work already")
	// ErrMalformedEvent says that an event of the interval is not what the log promises, or not the next one.
	ErrMalformedEvent = errors.New("malformed event")
	// ErrSlowConsumer ends an iterator over notifications that was read too slowly.
	ErrSlowConsumer = errors.New("too many notifications wait to be read")
)

// RefusedError says that the server refused a request, or that it is longer than
// the server takes (INVALID_REQUEST). Nothing was done.
type RefusedError struct {
	Code    string // a word in capitals: SESSION_BUSY, SESSION_NOT_FOUND, BAD_ANSWER, INVALID_PARAMS, …
	Message string
	Path    string // of INVALID_PARAMS: the parameter
}

func (e *RefusedError) Error() string { return e.Code + ": " + e.Message }

// ServerError says that the server has ended, or does not speak the protocol.
// What was asked of it may or may not have taken effect; what it acknowledged is
// on disk.
type ServerError struct {
	Reason string
	Stderr string // the last of what it wrote there
}

func (e *ServerError) Error() string {
	if e.Stderr == "" {
		return e.Reason
	}
	return e.Reason + "\n" + e.Stderr
}

// HandlerError says that a question handler failed, or gave an answer that does
// not fit. A timed question was left to its time, or to other clients; one without
// a time limit was closed without an answer, and an approval was denied. The run
// went on to its end, and Run returns its result as well.
type HandlerError struct{ Err error }

func (e *HandlerError) Error() string { return fmt.Sprintf("a question handler failed: %v", e.Err) }

// Unwrap is what the handler returned.
func (e *HandlerError) Unwrap() error { return e.Err }
