package question

import (
	"fmt"

	"deepseek/internal/session"
)

// Error is a refusal or a failed wait. Its text is for the model or for the
// client whose request it refuses.
type Error struct {
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Codes of calls that ask.
const (
	CodeAborted        = session.CodeAskAborted
	CodeEmptyQuestions = "EMPTY_QUESTIONS"
	CodeBadTimeout     = "BAD_TIMEOUT"
	CodeBadQuestions   = "BAD_QUESTIONS"
	CodeCallerNotLive  = "CALLER_NOT_LIVE"
	CodeDelegated      = "DELEGATED_CALLER"
	CodeBadIntent      = "BAD_INTENT"
	CodeDuplicateWait  = "DUPLICATE_WAIT"
	CodeNoProvider     = "NO_PROVIDER"
	CodeTimedOut       = "ASK_TIMED_OUT"
	CodeCancelled      = "ASK_CANCELLED"
	CodeLogWrite       = "LOG_WRITE" // the settlement could not be written; the run is over
)

// Codes of clients' requests.
const (
	CodeNoClaim     = "NO_CLAIM"
	CodeBadAnswer   = "BAD_ANSWER"
	CodeBadOutcome  = "BAD_OUTCOME" // a rejection that the wait cannot end with
	CodeReplyQueued = "REPLY_QUEUED"
)

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
