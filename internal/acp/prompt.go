package acp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/session"
)

// slot is the prompt in flight of a session. It is taken before anything else
// happens and free again when the whole agent is idle.
//
//	taken ──► queued ──► (answered: the model failed) ──► free, and answered
//
// id is set before known is closed. The place's mu guards all but the channels;
// seen and turn are set by the following goroutine alone.
type slot struct {
	known     chan struct{} // closed when the message is queued, or never will be
	begun     chan struct{} // closed when the agent was woken for it, or never will be
	id        string        // of the message; "" = it is not queued
	cancelled bool
	answered  bool
	outcome   chan outcome // holds one

	seen bool // the receipt was told
	turn int  // that claimed the message, 0 = none has
}

type outcome struct {
	reason sdk.StopReason
	err    error
}

// begin takes the slot.
func (p *place) begin() (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.slot != nil:
		return nil, invalidParams("sessionId", "a prompt of session %s is being worked on; cancel it or wait for its end", p.id)
	case p.over != nil:
		return nil, fmt.Errorf("session %s cannot be followed any more; load it again: %w", p.id, p.over)
	}
	p.slot = &slot{known: make(chan struct{}), begun: make(chan struct{}), outcome: make(chan outcome, 1)}
	return p.slot, nil
}

func (p *place) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slot != nil
}

// run queues the message and returns how the prompt ended. When ctx ends, the
// client wants no answer any more or has left: the prompt is cancelled.
func (p *place) run(ctx context.Context, sl *slot, text string) (sdk.StopReason, error) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if p.server.gone() {
			return // that ends all that goes on, and keeps what is queued
		}
		if err := p.cancelSlot(sl); err != nil {
			p.server.o.Log.Warn("a prompt could not be cancelled", "session", p.id, "error", err)
		}
	})
	defer func() {
		if !stop() {
			<-done // it must not hit the next prompt
		}
	}()
	<-p.opened // soon, or its opener gives up
	switch {
	case p.failed == nil:
		p.queue(sl, text)
	case errors.Is(p.failed, errUnopened):
		p.unqueued(sl, nil) // cancelled with it
	default:
		p.unqueued(sl, p.failed)
	}
	o := <-sl.outcome
	return o.reason, o.err
}

// queue queues the message, sees to it that what comes of it is told, and wakes
// the agent. A message that could not be queued ends the prompt.
func (p *place) queue(sl *slot, text string) {
	defer close(sl.begun)
	id, err := "", error(nil)
	if !p.wasCancelled(sl) {
		id, err = p.session.Queue(context.WithoutCancel(p.server.ctx), text) // bounded by the disk
	}
	sl.id = id
	close(sl.known)
	if id == "" {
		p.unqueued(sl, err)
		return
	}
	if p.stop == nil {
		p.follow(p.session.First())
	}
	p.session.Start()
	p.mu.Lock()
	cancelled, leaving := sl.cancelled, p.leaving
	sl.cancelled = cancelled || leaving
	p.mu.Unlock()
	if cancelled || leaving {
		// The cancel may have come before there was anything to cancel.
		if err := p.session.Cancel(context.Background(), leaving); err != nil && !isLeaving(err) {
			p.server.o.Log.Warn("a prompt could not be cancelled", "session", p.id, "error", err)
		}
	}
	if p.session.Status() != statusIdle {
		return
	}
	// The message was thrown out before the agent woke, or the work is done
	// already: nobody tells of idleness then, or has told of it.
	durable := p.session.Durable()
	if p.await(p.server.ctx, func() bool { return p.slot != sl || p.told >= durable }) {
		if err := p.idle(sl); err != nil {
			p.server.o.Log.Warn("a message was not taken back", "session", p.id, "error", err)
		}
	}
}

// unqueued ends a prompt whose message is not in the session.
func (p *place) unqueued(sl *slot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(sl)
	if sl.cancelled {
		err = nil
	}
	p.settle(sl, outcome{reason: sdk.StopReasonCancelled, err: err})
}

func (p *place) wasCancelled(sl *slot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sl.cancelled
}

// cancel is the client's word that whatever goes on shall end.
func (p *place) cancel() error {
	p.mu.Lock()
	sl := p.slot
	p.cancels++
	prompt := sl != nil && !sl.answered
	p.mu.Unlock()
	switch {
	case prompt:
		return p.cancelSlot(sl)
	case !p.isOpen():
		return nil // nothing goes on yet
	}
	// What goes on is others', also where it keeps the slot of a prompt that has
	// failed. Answers that they have queued are not the client's to throw away.
	return p.session.Cancel(context.Background(), true)
}

// cancelSlot cancels a prompt. One that is not in flight any more is left alone.
func (p *place) cancelSlot(sl *slot) error {
	p.mu.Lock()
	if p.slot != sl || sl.answered {
		p.mu.Unlock()
		return nil
	}
	sl.cancelled = true
	p.mu.Unlock()
	if !p.isOpen() {
		return nil // it is not queued then
	}
	return p.session.Cancel(context.Background(), false)
}

// look follows the prompt's message through the log, and tells whether the event
// is its own.
func (p *place) look(e session.Event) (own bool) {
	p.mu.Lock()
	sl := p.slot
	p.mu.Unlock()
	switch e.Type {
	case session.TypeInboxSpliced:
		var s struct { // the messages themselves may be long
			Inserted []struct {
				ID string `json:"id"`
			} `json:"inserted"`
		}
		if sl == nil || sl.seen || !decoded(e, &s) || len(s.Inserted) == 0 {
			return false
		}
		<-sl.known // its receipt is on disk, so it is just about to be
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range s.Inserted {
			sl.seen = sl.seen || m.ID == sl.id
		}
	case session.TypeUserMessage:
		var m struct {
			ID string `json:"id"`
		}
		if sl == nil || !sl.seen || !decoded(e, &m) || m.ID != sl.id {
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		sl.turn = p.teller.turn
		return true
	}
	return false
}

// rejected is how a prompt ends whose own turn ended with the event, because it
// failed at the model; nil if it did not. The slot stays taken until the agent is idle.
func (p *place) rejected(e session.Event) (*slot, error) {
	var end session.TurnEnd
	if e.Type != session.TypeTurnEnd || !decoded(e, &end) || end.Reason.Kind != session.EndError {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if sl := p.slot; sl != nil && sl.turn == end.Turn && !sl.cancelled {
		return sl, modelError(end.Reason.Error)
	}
	return nil, nil
}

func modelError(info *session.ErrorInfo) error {
	if info == nil {
		info = &session.ErrorInfo{Message: "the model request failed"}
	}
	message := info.Message
	if info.Code != "" {
		message = info.Code + ": " + message
	}
	if info.Status != 0 {
		message += fmt.Sprintf(" (HTTP %d)", info.Status)
	}
	return &sdk.RequestError{Code: codeInternal, Message: message, Data: errorData{Code: info.Code, Status: info.Status}}
}

// idle ends the prompt, if it was queued: the agent is idle, and everything that
// came of it has been told.
func (p *place) idle(sl *slot) error {
	p.mu.Lock()
	if sl == nil || p.slot != sl || !sl.seen {
		p.mu.Unlock()
		return nil
	}
	unclaimed := sl.turn == 0 && !sl.cancelled
	p.mu.Unlock()
	if unclaimed {
		// Nobody claimed the message, and nobody shall when its answer is out.
		gone, err := p.session.Discard(context.Background(), sl.id)
		switch {
		case err != nil && !isLeaving(err):
			return err
		case err == nil && !gone && p.session.Status() != statusIdle:
			return nil // a turn may have claimed it by now
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(sl)
	reason := sdk.StopReasonEndTurn
	if sl.cancelled || sl.turn == 0 {
		reason = sdk.StopReasonCancelled
	}
	p.settle(sl, outcome{reason: reason})
	return nil
}

// free gives the slot back. The caller holds mu.
func (p *place) free(sl *slot) {
	if p.slot == sl {
		p.slot = nil
		p.change()
	}
}

// settle answers the prompt, once. The caller holds mu.
func (p *place) settle(sl *slot, o outcome) {
	if !sl.answered {
		sl.answered = true
		sl.outcome <- o
	}
}

// fail ends a prompt of which nothing more can be told. The caller holds mu.
func (p *place) fail(sl *slot, err error) {
	p.free(sl)
	switch {
	case sl.cancelled:
		p.settle(sl, outcome{reason: sdk.StopReasonCancelled})
	case err == nil:
		p.settle(sl, outcome{err: errors.New("the session ended before the prompt did")})
	default:
		p.settle(sl, outcome{err: fmt.Errorf("what happens in the session cannot be told any more: %w", err)})
	}
}
