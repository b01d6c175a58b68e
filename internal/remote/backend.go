package remote

import (
	"context"

	"deepseek/internal/session"
)

// Backend makes and finds sessions for a server on standard streams. Its methods
// are called one at a time, Initialize first and once. Refusals are as those of Host.
//
// ref is how a client names a session: its id, or the path of its file. One
// that names no session is SESSION_NOT_FOUND.
type Backend interface {
	// Initialize takes up what the client wants for all sessions of the server.
	Initialize(ctx context.Context, p *InitializeParams) (ServerCapabilities, error)

	// Begin makes a session around its first message and returns once that is on
	// disk. Nothing works on it before Start.
	Begin(ctx context.Context, content []session.Block) (s Session, messageID string, err error)
	// Take takes an old session and writes nothing. SESSION_BUSY: it has another owner.
	Take(ctx context.Context, ref string) (Session, error)

	// Find is the id of a session.
	Find(ctx context.Context, ref string) (id string, err error)
	// Free refuses with SESSION_BUSY while another process owns the session.
	Free(ctx context.Context, ref string) error
	// Read and Questions look into the file of a session that this server does
	// not own; their duties are Host's.
	Read(ctx context.Context, ref string, fromSeq int64, maxBytes int) (session.Header, Page, error)
	Questions(ctx context.Context, ref string) (QuestionList, error)
	// List is a row for every session that is no sub-agent's.
	List(ctx context.Context) (rows any, err error)
}

// Session is a session that this process owns. The server closes it.
type Session interface {
	Host
	// First is the seq of the first event that is written under this ownership.
	First() int64
	// Start begins to work on what is queued.
	Start()
	// Rest ends the work, with the cause as the log names it: the turn in hand is
	// cancelled, what is queued stays, and messages are refused from then on. It
	// returns when the agent is idle and everything is on disk.
	Rest(ctx context.Context, cause string) error
	// Close ends everything else that works for the session and frees its lock.
	Close() error
}
