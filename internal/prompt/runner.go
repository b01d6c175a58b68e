package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/AlecAivazis/survey/v2"
)

// detachWait bounds letting the claim go when the card ends.
const detachWait = 2 * time.Second

// runner is one card being run, by one goroutine: Run's. It is a survey.Prompt.
type runner struct {
	p    *Prompter
	ctx  context.Context // Run's, which ends the card
	card Card
	desk Desk

	s        *cardState
	box      answerBox
	accepted Result // of a delivery
	end      error  // how the card ended while survey was validating

	away     *turn // the place among those that wait for the foreground, until it is used
	turn     *turn
	onScreen bool // the terminal is started and this card's
	plain    bool
	paint    painter
	printed  string // the plain text last printed
	told     string // the plain note last printed
	cols     int
	rows     int

	dec     decoder
	typed   strings.Builder // plain: a line not yet ended
	queue   []key           // typed and not yet applied
	escAt   time.Time       // when what the decoder holds is all there is
	saveAt  time.Time       // when the draft is due
	lookAt  time.Time       // when a late card looks at its question again
	look    *look           // under way; nil: none
	ended   <-chan Ended
	how     *Ended // how the wait ended, once that is known
	unsaved bool   // something was changed since the draft was saved
	unsure  bool   // an answer was sent, and whether it arrived is not known
	claims  int    // how often a lost claim was made again
}

func newRunner(p *Prompter, card Card, desk Desk) *runner {
	s := newState(card)
	if p.Redact != nil {
		s.redact = p.Redact
	}
	return &runner{
		p: p, card: card, desk: desk, s: s, ended: desk.Ended(), away: p.away.join(true),
		paint: painter{w: p.Terminal, colour: p.Colour, reflow: p.Reflow},
	}
}

// run runs the card, and once more each time that the process had gone to the background.
func (r *runner) run(ctx context.Context) (res Result, err error) {
	r.ctx = ctx
	for {
		if res, err = r.once(ctx); !errors.Is(err, errBackground) {
			return res, err
		}
		r.ended, r.how, r.end, r.away = r.desk.Ended(), nil, nil, r.p.away.join(true)
	}
}

// once brackets the card: turn, claim, terminal, and back in the opposite order.
func (r *runner) once(ctx context.Context) (res Result, err error) {
	defer func() { r.p.turns.leave(r.turn, r.write) }()
	if gone, err := r.takeTurn(); gone || err != nil {
		return r.gone(), err
	}
	if r.keepsDraft() && !r.s.touched {
		if d, ok := r.p.Drafts.Load(r.card.SessionID, r.card.CallID, r.card.Questions); ok {
			r.s.restore(d)
		}
	}
	defer detach(ctx, r.desk)
	defer r.endLook()
	if !r.s.late {
		if err := r.attach(ctx); errors.Is(err, ErrGone) {
			return r.gone(), nil
		} else if err != nil {
			return Result{}, fmt.Errorf("claim the question: %w", err)
		}
	}
	defer func() { err = errors.Join(err, r.closeScreen()) }()
	if err := r.openScreen(); err != nil {
		return Result{}, err
	}
	err = survey.AskOne(r, &r.box, survey.WithValidator(r.deliver))
	if err == nil {
		return r.accepted, nil
	}
	return r.over(err)
}

// gone is the result where the wait ended before there was a card.
func (r *runner) gone() Result {
	if r.how != nil {
		return Result{Outcome: Gone, By: r.how.By}
	}
	return Result{Outcome: Gone}
}

// foregroundLook is how often a card looks whether the process is in the foreground again:
// nothing tells so.
const foregroundLook = 500 * time.Millisecond

// takeTurn waits for the foreground and then for the terminal, in the order in which the cards
// came, unless the wait of the question ends first. Who waits for the foreground does not hold
// the terminal: others may write. Its turn is to be left, whatever came of it.
func (r *runner) takeTurn() (gone bool, err error) {
	defer func() { r.p.away.leave(r.away, r.write) }()
	for ready := r.away.ready; ; ready = nil {
		if ready == nil && r.p.Terminal.Foreground() {
			break
		}
		if gone, err := r.waitFor(ready); gone || err != nil {
			return gone, err
		}
	}
	r.turn = r.p.turns.join(true)
	r.p.away.leave(r.away, r.write)
	return r.waitFor(r.turn.ready)
}

// waitFor waits until ready is closed, or without one until it is time to look again, unless the
// wait of the question ends first.
func (r *runner) waitFor(ready <-chan struct{}) (gone bool, err error) {
	var look <-chan time.Time
	if ready == nil {
		timer := time.NewTimer(foregroundLook)
		defer timer.Stop()
		look = timer.C
	}
	for {
		select {
		case <-ready:
			return false, nil
		case <-look:
			return false, nil
		case <-r.ctx.Done():
			return false, r.ctx.Err()
		case e, ok := <-r.ended:
			if !ok { // attaching will tell
				r.ended = nil
				continue
			}
			r.how = &e
			return true, nil
		}
	}
}

// over turns the error that ended a card into what Run returns. On any other way out than an
// ending the person is still told, and what was typed is kept while it is of use.
func (r *runner) over(err error) (Result, error) {
	var e *ending
	if errors.As(err, &e) {
		return e.Result, nil
	}
	res := Result{State: r.lastLook()}
	words, keep := r.laterLine("not answered"), r.saveDraft
	if res.State != "" {
		words, keep = r.settledWords("not answered", res.State), r.dropDraft
	}
	err = errors.Join(err, keep())
	if !errors.Is(err, ErrTerminal) {
		err = errors.Join(err, r.say(words))
	}
	return res, err
}

// attach claims the wait and starts the countdown, unless the person has frozen it.
func (r *runner) attach(ctx context.Context) error {
	remaining, timed, err := r.desk.Attach(ctx)
	if err != nil {
		return err
	}
	r.ended, r.how = r.desk.Ended(), nil
	r.claim(remaining, timed)
	return nil
}

func (r *runner) claim(remaining time.Duration, timed bool) {
	switch {
	case !timed || remaining < 0:
		r.s.count, r.s.card.Blocking = countdown{}, true
	case r.s.touched:
		r.s.count = countdown{mode: countFrozen}
	case r.s.count.mode == countPaused: // goes on with what was left
	default:
		r.s.count = startCountdown(time.Now(), remaining)
	}
}

// detach lets the claim go. That it could not is no news: the host drops a claim with its
// connection.
func detach(ctx context.Context, desk Desk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachWait)
	defer cancel()
	_ = desk.Detach(ctx)
}
