package prompt

import (
	"context"
	"time"
)

// A late card has no wait that could tell it of the end of its question. So it looks by itself,
// every lateLook and before it saves what was typed: a draft is not to be there again when its
// question has gone.

const lateLook = 2 * time.Second

// look is one look, beside the card's loop.
type look struct {
	*calling
	state string // to be read when the call is over
}

// nextLook is when a late card looks again; zero: not before something under way is over.
func (r *runner) nextLook(now time.Time) time.Time {
	if r.look != nil || r.s.sending {
		return time.Time{}
	}
	if r.lookAt.IsZero() { // it has just become late
		r.lookAt = now.Add(lateLook)
	}
	if !r.saveAt.IsZero() && r.saveAt.Before(r.lookAt) {
		return r.saveAt
	}
	return r.lookAt
}

func (r *runner) startLook() {
	l := &look{}
	l.calling = r.begin(func(ctx context.Context) (_ bool, err error) {
		l.state, err = r.readsState(ctx)
		return true, err
	})
	r.look = l
}

// endLook gives up a look that is under way: calls of the desk do not overlap.
func (r *runner) endLook() {
	if l := r.look; l != nil {
		r.look = nil
		l.end()
	}
}

// looked acts on what a look has seen. If it could not see anything the card stays as it is.
func (r *runner) looked() error {
	l := r.look
	r.endLook()
	now := time.Now()
	r.lookAt = now.Add(lateLook)
	if l.err == nil && takesNone(l.state) {
		return r.settledElsewhere(l.state)
	}
	r.saveIfDue(now)
	return nil
}

// settledElsewhere ends a card that has found its question settled by somebody else, or by what it
// had sent itself without an answer.
func (r *runner) settledElsewhere(state string) error {
	if r.unsure {
		return r.settled(Unknown, "the outcome is unknown", state)
	}
	words := "answered, not by this card"
	if state == StateRemoved {
		words = "closed"
	}
	return r.finishAs(Result{Outcome: Gone, State: state}, r.withTyped("? "+cardName(r.card, 0)+": "+words), false)
}

// lastLook is the look of a card that ends by something else: the state, if the question takes no
// answer any more.
func (r *runner) lastLook() string {
	if !r.s.late {
		return ""
	}
	r.endLook()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), detachWait)
	defer cancel()
	if state, err := r.desk.State(ctx); err == nil && takesNone(state) {
		return state
	}
	return ""
}
