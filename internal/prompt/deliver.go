package prompt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepseek/internal/session"
)

// deliver is the last validator of the answers: whether they were accepted. An error sends the
// person back to the card, or, with r.end set, ends it.
func (r *runner) deliver(v any) error {
	answers, _ := v.([]session.Answer)
	send, outcome := r.desk.Respond, Answered
	if r.s.late {
		send, outcome = r.desk.Late, LateAnswered
		// Saved before, not after: the reply may be read, and the draft dropped, at any time.
		if err := r.saveDraft(); err != nil {
			r.s.note = err.Error() // it is sent all the same
		}
	}
	ok, err := r.call(func(ctx context.Context) (bool, error) { return send(ctx, answers) })
	if err == nil && ok {
		r.accepted = Result{Outcome: outcome, Answers: answers}
		return nil
	}
	if err = r.failed(err, true); err != nil {
		r.end = err
		return err
	}
	if r.accepted.Outcome == Answered { // the host's word that it was this answer
		r.accepted.Answers = answers
		return nil
	}
	return errors.New(r.s.note)
}

// failed finds out why something sent was not accepted: refused, lost to another, or a lost
// connection. nil: the card goes on, its note says why.
func (r *runner) failed(err error, answering bool) error {
	var refused *Refused
	switch {
	case err == nil:
		return r.lost(answering)
	case r.stops(err):
		return err
	case errors.As(err, &refused) && (refused.Code == CodeNoClaim || !answering):
		return r.readState(refused.Error(), Gone)
	case errors.As(err, &refused):
		r.s.note, r.s.drawn = refused.Error(), false // an Enter that waited is not for this
		return nil
	case r.how != nil && !r.s.late:
		return r.waitEnded(answering)
	}
	r.unsure = r.unsure || answering
	return r.connectionLost()
}

// stops tells an error of the card's own loop from one of the desk.
func (r *runner) stops(err error) bool {
	var e *ending
	return err != nil && (errors.As(err, &e) || errors.Is(err, ErrTerminal) || r.ctx.Err() != nil)
}

// calling is one call of the desk, beside the card's loop.
type calling struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when it is over; before that nobody reads the rest
	ok       bool
	err      error
	panicked any
}

// begin begins a call. Its end is the caller's to see to.
func (r *runner) begin(f func(context.Context) (bool, error)) *calling {
	ctx, cancel := context.WithCancel(r.ctx)
	c := &calling{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() { c.panicked = recover() }()
		c.ok, c.err = f(ctx)
	}()
	return c
}

// end ends the call, if it is not over yet, and returns when it is.
func (c *calling) end() {
	c.cancel()
	<-c.done
	if c.panicked != nil {
		panic(c.panicked) // here, where the terminal is brought back on the way out
	}
}

// call runs one call of the desk beside the card's loop, which goes on drawing and listens for
// Ctrl+C. Whatever ends the loop ends the call. The call is over when call returns.
func (r *runner) call(f func(context.Context) (bool, error)) (bool, error) {
	r.endLook()
	c := r.begin(f)
	defer c.end()
	defer func() { r.s.sending = false }()
	r.s.sending = true
	for {
		if loop := r.draw(); loop != nil {
			return false, loop
		}
		if loop := r.wait(c.done); loop != nil {
			return false, loop
		}
		select {
		case <-c.done:
			return c.ok, c.err
		default:
		}
	}
}

// expire is the end of the countdown.
func (r *runner) expire() error {
	ok, err := r.call(func(ctx context.Context) (bool, error) { return r.desk.Reject(ctx, CodeTimedOut) })
	if err == nil && ok {
		return r.finish(Expired, r.laterLine("left pending"), true)
	}
	r.s.count = countdown{} // not again by itself; a new claim brings a new one
	return r.failed(err, false)
}

// reject closes a blocking card.
func (r *runner) reject() error {
	ok, err := r.call(func(ctx context.Context) (bool, error) { return r.desk.Reject(ctx, CodeCancelled) })
	if err == nil && ok {
		return r.finish(Closed, "? "+cardName(r.card, 0)+": closed without an answer", false)
	}
	return r.failed(err, false)
}

// handOver lets the claim go before the card does.
func (r *runner) handOver() error {
	_, err := r.call(func(ctx context.Context) (bool, error) { return true, r.desk.Detach(ctx) })
	if r.stops(err) {
		return err
	}
	// Any other error is the connection's, and the claim ends with that.
	return r.finish(HandedOver, r.laterLine("handed over"), true)
}

// finish ends the card with last words. The draft is kept while the question can be answered.
func (r *runner) finish(o Outcome, words string, keep bool) error {
	return r.finishAs(Result{Outcome: o}, words, keep)
}

func (r *runner) finishAs(res Result, words string, keep bool) error {
	var err error
	if keep {
		err = r.saveDraft()
	} else {
		err = r.dropDraft()
	}
	lines := []string{words}
	if err != nil {
		lines = append(lines, "  "+oneLine(fmt.Sprint(err)))
	}
	r.lastWords(lines)
	return &ending{res}
}

func (r *runner) keepsDraft() bool { return r.card.keepsDraft() && r.p.Drafts != nil }

// saveDraft saves what has changed since it did so last. What was saved may have been dropped with
// the question, and is not to be there again.
func (r *runner) saveDraft() error {
	r.saveAt = time.Time{}
	if !r.unsaved {
		return nil
	}
	err := r.p.Drafts.Save(r.card.SessionID, r.card.CallID, r.card.Questions, r.s.draft())
	r.unsaved = err != nil
	return err
}

func (r *runner) dropDraft() error {
	r.saveAt, r.unsaved = time.Time{}, false
	if !r.keepsDraft() {
		return nil
	}
	return r.p.Drafts.Drop(r.card.SessionID, r.card.CallID)
}
