package question

import (
	"context"
	"slices"
	"sync"
	"time"

	"deepseek/internal/session"
)

// Root is the live root agent. All methods are safe for concurrent use.
type Root interface {
	// View calls f with the state under the inbox lock; f keeps nothing of it and does not block.
	View(f func(*session.State))
	// SteerIf queues the text that decide returns, decided and queued under the
	// inbox lock, and returns once it is on disk. decide's error is returned as it
	// is, and then nothing was written.
	SteerIf(ctx context.Context, src session.Source, decide func(*session.State) (text string, err error)) (id string, err error)
	// DiscardIf takes the queued message that decide names out of the inbox.
	DiscardIf(ctx context.Context, decide func(*session.State) (id string, err error)) (bool, error)
}

// Service asks, and takes late answers. All methods are safe for concurrent use.
//
// mu owns everything in it: the registry, every wait and its claims, watchers,
// providers and the queue of events. It is never held over a callback, the disk
// or a wait.
type Service struct {
	sessionID string
	clock     Clock

	mu         sync.Mutex
	root       Root    // nil: no agent is live
	waits      []*wait // those that have not ended, in the order opened
	watchers   []*watcher
	providers  []*provider
	events     []queued
	delivering bool // one goroutine hands events out
}

type watcher struct {
	tell    func(Event)
	stopped bool
}

type provider struct{ offer func(Card) bool }

type queued struct {
	event     Event
	delivered chan struct{} // closed when all watchers were told; may be nil
}

// New makes the service of a session. Until Bind, nobody can ask.
func New(sessionID string, clock Clock) *Service {
	return &Service{sessionID: sessionID, clock: clock}
}

// Bind says which agent is live, nil when none is any more.
func (s *Service) Bind(root Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root = root
}

func (s *Service) bound() Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root
}

// Ask waits for an answer without a bound. Where nobody offers to ask, it fails
// at once with NO_PROVIDER, and so it does when the last who offered has gone
// and nobody holds a claim. When ctx ends, the outcome is ASK_ABORTED.
func (s *Service) Ask(ctx context.Context, r Request) Outcome { return s.ask(ctx, r, false, 0) }

// AskTimed waits for at most the given time, asked or not: somebody may attach
// meanwhile. Only the end of that time makes the outcome pending; everything
// else is as in Ask. The same questions of an earlier message that still have no
// answer make it pending at once.
func (s *Service) AskTimed(ctx context.Context, r Request, wait time.Duration) Outcome {
	return s.ask(ctx, r, true, wait)
}

func (s *Service) ask(ctx context.Context, r Request, bounded bool, length time.Duration) Outcome {
	root := s.bound()
	if e := check(ctx, r, bounded, length, root != nil); e != nil {
		return Outcome{Err: e}
	}
	s.mu.Lock()
	e := s.duplicate(r.CallID)
	s.mu.Unlock()
	if e != nil {
		return Outcome{Err: e}
	}
	if bounded {
		var first string
		var found bool
		root.View(func(st *session.State) { first, found = st.Questions.AskedBefore(r.CallID) })
		if found {
			return Outcome{Pending: true, DuplicateOf: first}
		}
	}
	w := newWait(s.clock, s.sessionID, r, bounded, length)
	if !bounded && !s.offered(w.card) {
		return Outcome{Err: noProvider()}
	}
	if e := s.open(w); e != nil {
		return Outcome{Err: e}
	}
	if r.Opened != nil {
		r.Opened()
	}
	return s.await(ctx, w)
}

func noProvider() *Error {
	return errorf(CodeNoProvider, "nobody can be asked in this run. %s. Go on with what does not depend on it.", notAnswered)
}

func (s *Service) duplicate(callID string) *Error {
	if s.find(callID) != nil {
		return errorf(CodeDuplicateWait, "call %s waits for an answer already", callID)
	}
	return nil
}

// find is the wait of a call that has not ended. The caller holds mu.
func (s *Service) find(callID string) *wait {
	for _, w := range s.waits {
		if w.req.CallID == callID {
			return w
		}
	}
	return nil
}

// open registers the wait and tells the watchers. Time runs out for nobody before they know.
func (s *Service) open(w *wait) *Error {
	s.mu.Lock()
	if e := s.duplicate(w.req.CallID); e != nil {
		s.mu.Unlock()
		return e
	}
	s.waits = append(s.waits, w)
	told := make(chan struct{})
	s.events = append(s.events, queued{Event{Type: Opened, Card: w.snapshot()}, told})
	s.mu.Unlock()
	s.deliver()
	<-told // watchers do not block
	s.mu.Lock()
	w.announce()
	s.mu.Unlock()
	return nil
}

// await is the host's side of the wait: the goroutine that asks ends it when
// its time has passed, when nobody is left to answer, or when ctx ends.
func (s *Service) await(ctx context.Context, w *wait) Outcome {
	cancelled := ctx.Done()
	for {
		select {
		case <-w.done:
			return w.outcome
		case <-cancelled:
			s.end(w, func() bool { return true }, Outcome{Err: aborted(w.req)})
			cancelled = nil // whichever settlement won closes done
		case <-w.wake:
			if w.card.Timed {
				s.end(w, w.due, Outcome{Pending: true})
			} else if s.leftAlone(w) {
				s.end(w, w.unclaimed, Outcome{Err: noProvider()})
			}
		}
	}
}

func (s *Service) leftAlone(w *wait) bool {
	s.mu.Lock()
	alone := w.unclaimed()
	s.mu.Unlock()
	return alone && !s.offered(w.card)
}

// end settles the wait if, under the lock, it is open and when says so.
func (s *Service) end(w *wait, when func() bool, o Outcome) {
	s.mu.Lock()
	won := when() && w.begin()
	if !won {
		w.rearm() // a clock that rang early rings again
	}
	s.mu.Unlock()
	if won {
		// An error is the outcome then, and await returns that.
		_ = s.finish(w, o, nil)
	}
}

// finish writes the settlement that has begun, and then tells everybody. Its
// error is the log's: then the wait has ended with that.
func (s *Service) finish(w *wait, o Outcome, by *Claim) error {
	var err error
	if w.req.Commit != nil {
		err = w.req.Commit(o)
	}
	if err != nil {
		o = Outcome{Err: errorf(CodeLogWrite, "how the question ended could not be written to the session's log: %v", err)}
		by = nil
	}
	s.mu.Lock()
	s.waits = slices.DeleteFunc(s.waits, func(x *wait) bool { return x == w })
	w.finish(o, by)
	s.events = append(s.events, queued{event: Event{Type: Closed, Card: w.snapshot(), Outcome: o.word(), Answers: o.Answers}})
	s.mu.Unlock()
	s.deliver()
	if err != nil {
		return o.Err
	}
	return nil
}

// Attach claims the wait of a call. It yields nothing when the call is unknown,
// its wait has ended, or its time has passed.
func (s *Service) Attach(callID string) (*Claim, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.find(callID)
	if w == nil {
		return nil, false
	}
	return w.attach(s)
}

// Waits are the cards of the waits that are open, in the order opened.
func (s *Service) Waits() []Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	cards := []Card{}
	for _, w := range s.waits {
		if w.state == open {
			cards = append(cards, w.snapshot())
		}
	}
	return cards
}
