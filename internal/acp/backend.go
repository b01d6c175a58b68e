package acp

import (
	"context"
	"log/slog"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// Backend makes and finds sessions. Its methods may be called at once, and return
// soon after their context ends. A refusal is a *remote.Error or an *AuthError.
type Backend interface {
	// New makes a session that works in a folder, with these MCP servers beside
	// those of the configuration, which go first where a name is the same. Nothing
	// is written before its first message.
	New(ctx context.Context, cwd string, servers []config.Server) (Session, error)
	// Load takes an old session, likewise, and writes nothing. cwd is where it
	// works if the folder it began in is gone.
	Load(ctx context.Context, id, cwd string, servers []config.Server) (Session, error)
	// List is the sessions that are no sub-agent's, the latest used first.
	List(ctx context.Context) ([]Info, error)
}

// Info is one session of the list.
type Info struct {
	ID      string
	Cwd     string
	Title   string // "" = it has none
	Updated time.Time
}

// AuthError says that there is no key to work with.
type AuthError struct{ Message string }

func (e *AuthError) Error() string { return e.Message }

// Session is a session that this process owns, as its editor needs it. All
// methods may be called at once, Close last.
type Session interface {
	Header() session.Header
	Dir() string   // where tools work
	First() int64  // seq of the first event that is written under this ownership
	Level() string // what it may do without asking
	// SetLevel counts for all that is decided from its return on, at work or not.
	SetLevel(ctx context.Context, level string) error

	// Queue appends a message for a turn of its own and wakes nobody. It returns
	// the message's id once the receipt is on disk.
	Queue(ctx context.Context, text string) (messageID string, err error)
	Start()         // begins to work on what is queued
	Status() string // as Follow would tell it
	Cancel(ctx context.Context, keepInbox bool) error
	// Discard takes a queued message out; false if it is not queued any more.
	Discard(ctx context.Context, messageID string) (bool, error)

	// Durable is the seq behind the last event that is on disk. Read and Follow
	// have the duties of remote.Host; there is nothing to follow before the
	// first message is queued.
	Durable() int64
	Read(ctx context.Context, fromSeq int64, maxBytes int) (remote.Page, error)
	Follow(ctx context.Context, fromSeq int64, sink func(remote.Notice) error) error

	// Watch, Attach and Answer have the duties of remote.Host.
	Watch(f func(question.Event)) (stop func())
	Attach(callID string) (remote.Claim, bool)
	Answer(ctx context.Context, callID string, answers []session.Answer) (accepted bool, err error)
	AnswerCommand(callID string) string // for a shell
	// Waiting are the questions that can be answered late and have no reply queued.
	Waiting(ctx context.Context) ([]remote.ActiveQuestion, error)

	// Rest ends the work, with the cause as the log names it, and keeps what is
	// queued. It returns when the agent is idle and everything is on disk.
	Rest(ctx context.Context, cause string) error
	// Close ends everything else that works for the session and frees its lock.
	Close() error
}

// Options of a server.
type Options struct {
	Version string
	Clock   question.Clock // of countdowns; nil is the machine's
	Log     *slog.Logger   // nil: nothing is logged
	// Note tells a person, in one line, what was left out of what the client asked
	// for. nil: nobody is told. It may be called at once.
	Note func(line string)
}

// Words of a session's status.
const statusIdle = "idle"

// Levels are the modes that a client can set, in order.
var levels = []struct{ id, name, about string }{
	{"read-only", "Read only", "Reads files. Changes nothing, and asks before it runs a command."},
	{"workspace-write", "Workspace", "Changes files and runs commands in the workspace. Asks for anything beyond it."},
	{"full-access", "Full access", "Changes files and runs commands anywhere, without asking."},
}
