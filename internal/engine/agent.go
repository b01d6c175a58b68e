package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// Log is a session's log as its owner sees it. It is safe for concurrent use.
type Log interface {
	// Append assigns seqs from expect on and hands the events to the log's
	// writer. It never waits for the disk. It fails if expect is not the next
	// seq, and for good once a write has failed.
	Append(expect int64, events []session.Event) (next int64, err error)
	// Sync returns once everything appended before the call is on disk.
	Sync(ctx context.Context) error
	// Follow reads durable lines, from a seq on, as they stand in the file.
	Follow(fromSeq int64) (Cursor, error)
}

// Cursor reads a log in order. It is for one goroutine.
type Cursor interface {
	// Next blocks until there are durable lines it has not returned; those that are
	// there come even if ctx has ended. It ends with io.EOF when the log was closed.
	Next(ctx context.Context) ([]Line, error)
	Close() error
}

// Line is one event as it stands in the file.
type Line struct {
	Seq  int64
	Type string
	Raw  []byte // without the newline
}

// Options are what an agent is made of. All but PlanTools, Sleep, Cost, Spill and Redact are required.
type Options struct {
	SessionID string
	Model     model.Model
	Config    session.RequestConfig
	System    string // of a new session; a resume sends what the log holds
	Window    int    // context window in tokens
	Tools     *tool.Registry
	PlanTools *tool.Registry // offered in plan mode instead; nil: nothing is
	Settings  session.Settings
	MaxSteps  int // of an idle-to-idle interval
	// Instructions is the text of InstructionsText, "" for none. It enters once,
	// before the first task, and again where it differs from what the log holds.
	Instructions string

	Now   func() time.Time
	NewID func() string                              // message ids, UUID v7
	Sleep func(context.Context, time.Duration) error // between attempts; may be nil
	Cost  func(session.Usage) (usd float64, ok bool) // may be nil
	// Adapt says what a server that refused a request needs, beyond what the
	// session has taken up already; false if that is not what the refusal is
	// about. May be nil.
	Adapt func(err error, have []string) (adaptation string, ok bool)
	// Spill keeps what is too long for a result. May be nil.
	Spill tool.Spill
	// Redact takes secrets out of an encoded event before anything is made of
	// it, so that a resumed history is the one that was sent. May be nil.
	Redact func([]byte) []byte
}

// Errors of an agent.
var (
	// ErrLeaving refuses a message that arrives when the owner has decided to go.
	ErrLeaving = errors.New("OWNER_LEAVING: the owner of this session is leaving")
	// ErrRunning refuses an owned run on an agent that is not idle.
	ErrRunning = errors.New("the agent is not idle")
)

// Status of the whole agent.
type Status string

// The states of an agent.
const (
	Idle    Status = "idle"
	Running Status = "running"
)

// Agent works on one session. All methods are safe for concurrent use.
//
// mu is the inbox lock. It guards the folds and the driver's state, and orders
// appends; it is never held over the disk, the network or a tool. The fields
// under "driver" belong to the one goroutine that drives; nobody else touches them.
type Agent struct {
	opts Options
	log  Log

	mu         sync.Mutex
	state      session.State
	unwritten  []session.Event // closers that repair owes; they go before the first append
	interval   *session.Interval
	begun      *begun // the interval is open and its Run has not come yet
	status     Status
	idle       chan struct{} // closed while idle
	resting    bool          // the last turn failed: what is queued wakes nothing
	leaving    bool
	armed      string                  // id of the goal that gets rounds; a goal of an earlier process is not
	cancel     context.CancelCauseFunc // of the turn in hand, nil between turns
	cancelNext bool                    // cancelled between turns: begin no other
	failure    error                   // the log's; final
	feeds      map[*Feed]struct{}

	// driver
	resumed bool                // the next request/header says so
	headed  *session.HeaderBody // what the log's last request/header was made of; nil where that is not known
	steps   int                 // of the interval
	roomyTo int64               // after a compaction that did not help: none is tried below this weight of the history
	repeats repeats
}

// New makes an agent over a log that state was folded from; the agent takes the
// state over. closers are the events by which State.Repair closed what a crash
// left open: they stand in the state already, and in the log with the first
// append. The log may still be empty.
func New(log Log, state session.State, closers []session.Event, opts Options) *Agent {
	a := &Agent{
		opts: opts, log: log, state: state, unwritten: closers, resumed: state.LastHeader != nil,
		status: Idle, idle: make(chan struct{}), feeds: map[*Feed]struct{}{},
	}
	close(a.idle)
	return a
}

// View calls f with the state as it stands. f reads only, keeps nothing of it, and does not block.
func (a *Agent) View(f func(*session.State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.state)
}

// event encodes a payload. Secrets are out of it from here on.
func (a *Agent) event(typ string, data any) (session.Event, error) {
	var op *session.SurfaceOp
	if r, ok := data.(replacing); ok {
		data, op = r.UserMessage, &r.SurfaceOp
	}
	e, err := session.NewEvent(typ, a.opts.Now().UnixMilli(), data)
	e.SurfaceOp = op
	if err == nil && a.opts.Redact != nil {
		e.Data = a.opts.Redact(e.Data)
	}
	return e, err
}

// item is a payload on its way into the log.
type item struct {
	typ  string
	data any
}

// replacing is a user/message that takes the place of others in the history.
type replacing struct {
	session.UserMessage
	session.SurfaceOp
}

// put appends a batch and folds it. The caller holds mu. The events are not
// durable yet: that is sync's.
func (a *Agent) put(items ...item) error {
	if a.failure != nil {
		return a.failure
	}
	events := make([]session.Event, 0, len(items))
	for _, it := range items {
		e, err := a.event(it.typ, it.data)
		if err != nil {
			return a.failed(err)
		}
		events = append(events, e)
	}
	expect := a.state.Next - int64(len(a.unwritten))
	if _, err := a.log.Append(expect, append(a.unwritten, events...)); err != nil {
		return a.failed(err)
	}
	a.unwritten = nil
	for _, e := range events {
		e.Seq = a.state.Next
		e = e.Shared()
		if err := a.state.Apply(e); err != nil {
			return a.failed(fmt.Errorf("fold %s: %w", e.Type, err))
		}
		if a.interval != nil {
			if err := a.interval.Apply(e); err != nil {
				return a.failed(err)
			}
		}
	}
	return nil
}

// append is put for callers that do not hold mu.
func (a *Agent) append(items ...item) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.put(items...)
}

// sync returns once everything appended so far is on disk. The caller does not hold mu.
func (a *Agent) sync(ctx context.Context) error {
	err := a.log.Sync(ctx)
	if err != nil && ctx.Err() == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.failed(err)
	}
	return err
}

// failed ends the agent: without its log it may do nothing more. The caller holds mu.
func (a *Agent) failed(err error) error {
	if a.failure == nil {
		a.failure = err
		if a.cancel != nil {
			a.cancel(err)
		}
	}
	return a.failure
}

// Failure is the error that ended the agent for good, nil while it lives.
func (a *Agent) Failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// Record appends an event that is for the log only, such as an approval, and
// returns once it is on disk.
func (a *Agent) Record(ctx context.Context, typ string, data any) error {
	if err := a.append(item{typ, data}); err != nil {
		return err
	}
	return a.sync(ctx)
}

// Reconfigure changes the options between two runs. It fails unless the agent
// is idle and owned by nobody.
func (a *Agent) Reconfigure(change func(*Options)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status != Idle || a.interval != nil {
		return ErrRunning
	}
	change(&a.opts)
	return nil
}
