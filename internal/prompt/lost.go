package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a card does when something it sent was not accepted, and when its wait ends by others.

// How long the card waits to hear who won, and for the state after a lost connection.
const (
	whoWait   = 2 * time.Second
	stateWait = 5 * time.Second
)

// maxClaims bounds how often a card claims anew by itself.
const maxClaims = 3

// lost: another settlement won. Who it was comes from the wait's end, else from the state.
func (r *runner) lost(answering bool) error {
	if err := r.hear(); err != nil {
		return err
	}
	if r.how != nil && !r.s.late {
		return r.waitEnded(answering)
	}
	return r.readState("not accepted", Gone)
}

// hear waits a little for the wait to say how it ended.
func (r *runner) hear() error {
	enough := make(chan struct{})
	timer := time.AfterFunc(whoWait, func() { close(enough) })
	defer timer.Stop()
	r.s.sending = true
	defer func() { r.s.sending = false }()
	for r.how == nil && r.ended != nil && !r.s.late {
		if err := r.draw(); err != nil {
			return err
		}
		if err := r.wait(enough); err != nil {
			return err
		}
		select {
		case <-enough:
			return nil
		default:
		}
	}
	return nil
}

// waitEnded ends the card, or makes it a late one, by how the wait ended.
func (r *runner) waitEnded(answering bool) error {
	e, name := *r.how, "? "+cardName(r.card, 0)+": "
	by := ""
	if e.By != "" {
		by = " by " + oneLine(e.By)
	}
	result := ending{Result{Outcome: Gone, By: e.By}}
	switch e.Outcome {
	case EndedAnswered:
		if e.Mine && answering {
			r.accepted.Outcome = Answered
			return nil
		}
		return r.finishAs(result.Result, r.withTyped(r.answeredBy(e, by)), false)
	case EndedPending:
		if answering || r.s.touched {
			r.s.becomeLate(time.Now(), "the wait ended"+by+" before this answer: it was left pending. Enter sends it as a late answer")
			return nil
		}
		result.Outcome = Expired
		return r.finishAs(result.Result, r.laterLine("left pending"), true)
	case EndedAborted:
		return r.finishAs(result.Result, r.laterLine("the run was cancelled"), true)
	}
	if e.Mine {
		result.Outcome = Closed
	}
	return r.finishAs(result.Result, r.withTyped(name+"closed"+by), false)
}

// answeredBy says what somebody else has answered, as this card would have.
func (r *runner) answeredBy(e Ended, by string) string {
	word := "answered" + by
	if by == "" {
		word = "answered, not by this card"
	}
	if len(e.Answers) != len(r.card.Questions) {
		return "? " + cardName(r.card, 0) + ": " + word
	}
	lines := make([]string, len(e.Answers))
	for i, a := range e.Answers {
		lines[i] = fmt.Sprintf("? %s: %s (%s)", cardName(r.card, i), clip(r.s.summary(a), longSummary), word)
	}
	return strings.Join(lines, "\n")
}

// longTyped is how many columns of what was typed the last words show.
const longTyped = 2000

// withTyped adds what had been typed to the last words of a card that is taken away: the draft
// goes with the question, the person's words are not to go with it.
func (r *runner) withTyped(words string) string {
	for i := range r.s.items {
		for _, f := range r.s.items[i].texts {
			if !f.blank() {
				words += "\n  what you had typed: " + clip(oneLine(r.s.redact(f.text)), longTyped)
			}
		}
	}
	return words
}

// connectionLost: whether what was sent has arrived is not known.
func (r *runner) connectionLost() error {
	if err := r.saveDraft(); err != nil {
		r.s.note = err.Error()
	}
	return r.readState("the connection was lost, the outcome is unknown", Unknown)
}

// putAway ends a card that its person leaves. A late one looks first: its question may not have to
// be answered later, and then the draft goes. The second Ctrl+C does not wait for the word.
func (r *runner) putAway(o Outcome, what string) error {
	if r.s.late && !r.s.sending {
		state, err := r.state()
		switch {
		case r.stops(err):
			return err
		case err == nil && takesNone(state):
			if o == HandedOver {
				o = Gone // to nobody
			}
			return r.settled(o, what, state)
		}
	}
	return r.finish(o, r.laterLine(what), true)
}

// settled ends a card whose question takes no answer any more.
func (r *runner) settled(o Outcome, what, state string) error {
	return r.finishAs(Result{Outcome: o, State: state}, r.settledWords(what, state), false)
}

func (r *runner) settledWords(what, state string) string {
	words := "; the question has an answer"
	if state == StateRemoved {
		words = "; the question is closed"
	}
	return r.withTyped("? " + cardName(r.card, 0) + ": " + what + words)
}

// takesNone tells whether a question of that state takes no answer any more.
func takesNone(state string) bool { return state == StateSettled || state == StateRemoved }

// state asks for the question's state.
func (r *runner) state() (state string, err error) {
	_, err = r.call(func(ctx context.Context) (_ bool, err error) {
		state, err = r.readsState(ctx)
		return true, err
	})
	return state, err
}

func (r *runner) readsState(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	return r.desk.State(ctx)
}

// readState asks for the question's state and acts on it. why begins what the person is told,
// settled is the outcome if the question has an answer.
func (r *runner) readState(why string, settled Outcome) error {
	r.s.note = why + "; reading the state again"
	state, err := r.state()
	if r.stops(err) {
		return err
	}
	switch {
	case err != nil:
		return r.finish(Unknown, r.laterLine(why), true)
	case state == StateContinued && !r.s.touched:
		return r.finish(Expired, r.laterLine("left pending"), true)
	case state == StateContinued:
		again := ""
		if r.unsure {
			again = " again"
		}
		r.s.becomeLate(time.Now(), why+"; the question is pending. Enter sends the answer"+again+", late")
		return nil
	case state == StateSettled:
		return r.settled(settled, why, state)
	case state == StateRemoved:
		return r.settled(Gone, why, state)
	}
	return r.reclaim(why)
}

// reclaim claims a question that is still open anew.
func (r *runner) reclaim(why string) error {
	r.claims++
	if r.claims > maxClaims {
		return r.finish(Unknown, r.laterLine(why), true)
	}
	var remaining time.Duration
	var timed bool
	_, err := r.call(func(ctx context.Context) (_ bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, stateWait)
		defer cancel()
		remaining, timed, err = r.desk.Attach(ctx)
		return true, err
	})
	switch {
	case r.stops(err):
		return err
	case errors.Is(err, ErrGone): // it ended meanwhile, the state knows how
		return r.readState(why, Unknown)
	case err != nil:
		return r.finish(Unknown, r.laterLine(why), true)
	}
	r.ended, r.how = r.desk.Ended(), nil
	r.s.late = false
	r.claim(remaining, timed)
	now := time.Now()
	r.s.drawn, r.s.guardUntil = false, now.Add(enterGuard)
	r.s.note = why + "; the question is still open. Enter sends the answer again"
	return nil
}
