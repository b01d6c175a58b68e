package acp

import (
	"context"
	"errors"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// place is the client's place at one session. It is there before the session
// is, which is then being opened: opened, session, teller and failed are the
// opener's until it closes opened.
//
// mu guards slot, cancels, leaving, told, over and changed. The teller belongs
// to whoever tells: first the handler that loads the session, then the one
// goroutine that follows it.
type place struct {
	server *server
	id     sdk.SessionId
	closed bool            // by the client; guarded by the server's mu
	wanted context.Context // ends when it is closed
	unwant context.CancelFunc

	opened  chan struct{} // closed when the session is there, or cannot be opened
	failed  error         // why it cannot; nothing below is used then
	session Session
	teller  *teller
	unwatch func()

	leaveOnce sync.Once
	left      error // how leaving went

	mu      sync.Mutex
	slot    *slot         // of the prompt in flight
	cancels int           // by the client, so far
	leaving bool          // no card is taken up any more
	told    int64         // seq of the next event to tell
	over    error         // why nothing is told any more
	changed chan struct{} // closed with the next change of slot, told or over; nil: nobody waits

	// Of prompts, which come one at a time, and leave:
	stop      context.CancelFunc // ends the following; nil before it began
	following chan struct{}      // closed when it has ended

	cards sync.WaitGroup
}

// newPlace is a place at a session that is to be opened.
func newPlace(s *server, id sdk.SessionId) *place {
	p := &place{server: s, id: id, opened: make(chan struct{})}
	p.wanted, p.unwant = context.WithCancel(s.ctx)
	return p
}

// attach is the opener's: the session is there.
func (p *place) attach(owned Session) {
	p.session = owned
	p.teller = newTeller(owned.Dir(), p.update)
	p.mu.Lock()
	p.told = owned.First()
	p.mu.Unlock()
	p.unwatch = owned.Watch(p.see)
}

// isOpen tells whether the session is there.
func (p *place) isOpen() bool {
	select {
	case <-p.opened:
		return p.failed == nil
	default:
		return false
	}
}

// ready returns when the session is there, or the error why it will not be.
func (p *place) ready(ctx context.Context) error {
	select {
	case <-p.opened:
		return p.failed
	case <-ctx.Done():
		return errLeft
	}
}

func (p *place) update(u sdk.SessionUpdate) error { return p.server.update(p.id, u) }

// say puts words of our own into the chat.
func (p *place) say(text string) error {
	return p.update(sdk.UpdateAgentMessageText("\n\n" + text + "\n\n"))
}

const pageSize = 4 << 20

// catchUp reads what is in the log of a session that was just taken, tells it
// if tell says so, and follows it from there. It ends with ctx, between two events
// or two updates: a client that reads slowly does not have to read all of it.
func (p *place) catchUp(ctx context.Context, tell bool) error {
	p.teller.mute = !tell
	p.teller.send = func(u sdk.SessionUpdate) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return p.update(u)
	}
	next := int64(0)
	for more := true; more; {
		page, err := p.session.Read(ctx, next, pageSize)
		if err != nil {
			return err
		}
		for _, raw := range page.Events {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := session.ParseEvent(raw)
			if err != nil {
				return err
			}
			if err := p.teller.event(e, false); err != nil {
				return err
			}
		}
		next, more = page.NextSeq, page.More
	}
	if err := p.teller.interrupted(); err != nil {
		return err
	}
	p.teller.mute, p.teller.send = false, p.update
	p.follow(next)
	return p.remind(ctx)
}

// remind says which questions wait for an answer.
func (p *place) remind(ctx context.Context) error {
	waiting, err := p.session.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, q := range waiting {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := card{Card: question.Card{CallID: q.CallID, Questions: q.Questions}, place: p}
		if err := p.say(c.words() + "\n" + c.command("It waits for an answer, in a terminal:")); err != nil {
			return err
		}
	}
	return nil
}

// follow begins to tell what happens from a seq on. It returns when nothing
// that happens from now on can be missed.
func (p *place) follow(from int64) {
	ctx, cancel := context.WithCancel(p.server.ctx)
	p.stop, p.following = cancel, make(chan struct{})
	begun := make(chan struct{})
	p.mu.Lock()
	p.told = from
	p.mu.Unlock()
	go func() {
		defer close(p.following)
		first := true
		err := p.session.Follow(ctx, from, func(n remote.Notice) error {
			if first { // it is the status: the subscription stands
				first = false
				close(begun)
			}
			return p.notice(n)
		})
		p.ended(err)
		if first {
			close(begun)
		}
	}()
	<-begun
}

// notice tells one thing. It is called by the following goroutine alone.
func (p *place) notice(n remote.Notice) error {
	switch {
	case n.Event != nil:
		e, err := session.ParseEvent(n.Event)
		if err != nil {
			return err
		}
		own := p.look(e)
		sl, failed := p.rejected(e)
		if err := p.teller.event(e, own || failed != nil); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if failed != nil && !sl.cancelled {
			p.settle(sl, outcome{err: failed})
		}
		p.told = n.Seq + 1
		p.change()
	case n.Delta != nil:
		return p.teller.delta(*n.Delta)
	case n.Status == statusIdle:
		p.mu.Lock()
		sl := p.slot
		p.mu.Unlock()
		return p.idle(sl)
	}
	return nil
}

// change wakes whoever waits for one. The caller holds mu.
func (p *place) change() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// await returns when f, called with mu held, is true or nothing is told any
// more. It returns false when ctx ends first.
func (p *place) await(ctx context.Context, f func() bool) bool {
	for {
		p.mu.Lock()
		if f() || p.over != nil {
			p.mu.Unlock()
			return true
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

var errOver = errors.New("the session was left")

// ended says that nothing is told any more.
func (p *place) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = err
	if err == nil {
		p.over = errOver
	}
	p.change()
	if p.slot != nil {
		p.fail(p.slot, err)
	}
}

// leave ends the work, tells the client the last of it, and frees the session.
// A session that is being opened is left when it is there. It may be called from
// several goroutines, which all wait for the end.
func (p *place) leave(cause string) error {
	p.mu.Lock()
	p.leaving = true
	sl := p.slot
	if sl != nil && !p.isOpen() {
		sl.cancelled = true // and is not queued
	}
	p.mu.Unlock()
	<-p.opened
	if p.failed != nil {
		return nil // its opener tells that, and leaves nothing behind
	}
	if sl != nil {
		<-sl.begun // what was taken up is in the log
		p.mu.Lock()
		sl.cancelled = true
		p.mu.Unlock()
	}
	p.leaveOnce.Do(func() { p.left = p.end(cause) })
	return p.left
}

// end is leave once nothing is being begun there any more.
func (p *place) end(cause string) error {
	p.unwant()
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	err := p.session.Rest(context.Background(), cause)
	if p.stop != nil {
		flush, cancel := context.WithTimeout(context.Background(), flushTime)
		durable := p.session.Durable()
		if !p.await(flush, func() bool { return p.told >= durable && p.slot == nil }) {
			p.server.o.Log.Warn("the client did not read the last updates", "session", p.id)
		}
		cancel()
		p.stop()
		<-p.following
	}
	p.unwatch()
	p.mu.Lock()
	if p.slot != nil {
		p.fail(p.slot, nil)
	}
	p.mu.Unlock()
	p.cards.Wait()
	return errors.Join(err, p.session.Close())
}
