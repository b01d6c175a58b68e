// Package tool says what a tool is, checks calls against its schema and keeps
// the registry of those that a session offers. The tools themselves live in a
// folder per family below this one; the text that a model reads about a tool
// lies beside it in a file of its own.
package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"deepseek/internal/session"
)

// Tool is one tool. Run may be called from several goroutines at once if Traits().Parallel.
type Tool interface {
	Spec() session.ToolSpec
	Traits() Traits
	// Run does the work of a call whose arguments fit the schema. It returns
	// soon after ctx ends and leaves nothing running that it started, save
	// background jobs that the tool's owner ends. It never panics on purpose;
	// a failure is a Result, not an error: the model is told.
	Run(ctx context.Context, call Call) Result
}

// Traits are what scheduling and permissions need to know of a tool.
type Traits struct {
	Parallel bool // may overlap with other parallel calls of its message
	ReadOnly bool // changes nothing outside the session
	Person   bool // waits for a person: consecutive calls wait at the same time, without a limit
	TopLevel bool // a model may call it, code that a model wrote may not
}

// Call is a call that has been accepted for running.
type Call struct {
	ID        string
	Turn      int
	Step      int
	Arguments json.RawMessage   // one JSON object, valid for the schema
	Progress  func(line string) // may be nil; for the screen only, may be dropped; safe for concurrent use
	// Waiting says that the call has asked and waits for a person: calls beside
	// it ask in the order of their message. Nil where nobody wants to know.
	Waiting func()
	// Commit logs the result and returns once it is on disk, whatever the
	// call's place in its message. A tool on whose outcome somebody waits
	// calls it, at most once, before it tells them; Run then returns the same
	// result. Nil where the caller does not offer it.
	Commit func(Result) error
	// Dispatch begins a call of another tool for this one, a sub-call, and
	// returns at once. Sub-calls are numbered in the order of these calls, are
	// checked, scheduled and logged as a model's own calls are, and have all
	// ended before this call has its result. done is called once, from
	// a goroutine of its own, when the sub-call's end is logged; it may block as
	// long as Run has not returned. ctx ends the sub-call; it is Run's or made
	// of it. Safe for concurrent use. Nil where the caller does not offer it.
	Dispatch func(ctx context.Context, name, rawArguments string, done func(Result))
}

// Result is the outcome of a call.
type Result struct {
	Content string // what the model reads; of an error it begins with Code and ": "
	Code    string // "" = success
	Meta    *session.ToolMeta
	// Limit is for a tool that has cut its text itself: how many bytes of it a
	// model is sent, where that is more than MaxContent.
	Limit int
	// Unanswered is the call whose question has no answer yet, where a person was
	// asked and the wait ended so; of a question that was asked before, the first
	// call. Later calls of the message that change things are not started.
	Unanswered string
}

// Errorf is a failed result whose text begins with the code.
func Errorf(code, format string, args ...any) Result {
	return Result{Code: code, Content: code + ": " + fmt.Sprintf(format, args...)}
}

// Codes that any tool may use. A family adds its own beside its tools.
const (
	CodeInvalidArguments = "INVALID_ARGUMENTS"
	CodeUnknownTool      = "UNKNOWN_TOOL"
	CodeDenied           = "DENIED"
	CodeAborted          = "ABORTED"
	CodeInternal         = "INTERNAL"
)

// Spill keeps what is too big for a result in a file beside the session.
type Spill interface {
	// Create makes a new file, 0600, named after hint (a call id or the like),
	// and returns it with the path that the model is shown. Safe for concurrent use.
	Create(hint string) (SpillFile, error)
}

// SpillFile is an open spill file.
type SpillFile interface {
	Write(p []byte) (int, error)
	Close() error
	Path() string // absolute
	Name() string // within the spill folder
}
