package prompt

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/AlecAivazis/survey/v2"
)

// draftWait is how long changes gather before the draft is saved.
const draftWait = 500 * time.Millisecond

// longSummary is how many columns of an answer its last words show.
const longSummary = 200

// Prompt implements survey.Prompt: it returns the answers when the person sends them, and an
// *ending when the card ends otherwise.
func (r *runner) Prompt(*survey.PromptConfig) (any, error) {
	for {
		if !r.s.drawn && r.onScreen {
			r.feed(r.p.Terminal.Ready())
		}
		if r.s.count.expired(time.Now()) {
			if err := r.expire(); err != nil {
				return nil, err
			}
			continue
		}
		eff := r.apply()
		if eff == effectSubmit {
			return r.s.answers(), nil
		}
		if err := r.do(eff); err != nil {
			return nil, err
		}
		if eff != effectNone || r.s.count.expired(time.Now()) {
			continue
		}
		if err := r.draw(); err != nil {
			return nil, err
		}
		if err := r.wait(nil); err != nil {
			return nil, err
		}
	}
}

// PromptAgain implements survey's PromptAgainer: the card goes on with all that was typed.
func (r *runner) PromptAgain(cfg *survey.PromptConfig, _ any, _ error) (any, error) {
	return r.Prompt(cfg)
}

// Error implements survey.Prompt. It is called when delivering failed: the card then either
// ended, or says why and goes on.
func (r *runner) Error(_ *survey.PromptConfig, invalid error) error {
	if r.end != nil {
		return r.end
	}
	r.s.note = invalid.Error()
	return nil
}

// Cleanup implements survey.Prompt: the answers were accepted.
func (r *runner) Cleanup(*survey.PromptConfig, any) error {
	word := "answered"
	if r.accepted.Outcome == LateAnswered {
		word = "answered late"
	}
	lines := make([]string, len(r.card.Questions))
	for i, a := range r.accepted.Answers {
		lines[i] = fmt.Sprintf("? %s: %s (%s)", cardName(r.card, i), clip(r.s.summary(a), longSummary), word)
	}
	r.lastWords(lines)
	if r.accepted.Outcome == LateAnswered {
		return nil // its reply may still be taken back; the owner drops the draft when it is read
	}
	return r.dropDraft()
}

// lastWords says what became of the card. That it cannot be said changes nothing about it.
func (r *runner) lastWords(lines []string) { _ = r.say(lines...) }

// do carries out what a key asked for.
func (r *runner) do(eff effect) error {
	switch eff {
	case effectHandOver:
		return r.handOver()
	case effectClose:
		return r.reject()
	case effectLeave:
		return r.putAway(HandedOver, "not answered")
	case effectInterrupt:
		return r.putAway(Interrupted, "interrupted")
	case effectSuspend:
		return r.suspend()
	}
	return nil
}

// apply applies the keys that wait, up to one that asks for something, or to the end of the time.
func (r *runner) apply() effect {
	for len(r.queue) > 0 {
		now := time.Now()
		if r.s.count.expired(now) {
			return effectNone
		}
		k := r.queue[0]
		r.queue = r.queue[1:]
		eff := r.s.key(k, now)
		if r.s.touched && r.keepsDraft() {
			r.unsaved = true
			if r.saveAt.IsZero() {
				r.saveAt = now.Add(draftWait)
			}
		}
		if eff != effectNone {
			return eff
		}
	}
	return effectNone
}

// wait blocks until one thing has happened and takes it in. done, of a call under way, only
// ends the wait.
func (r *runner) wait(done <-chan struct{}) error {
	var due <-chan time.Time
	var looked <-chan struct{}
	if r.look != nil {
		looked = r.look.done
	}
	if d, ok := r.due(time.Now()); ok {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	var input <-chan Input
	var signals <-chan os.Signal
	var ready, arrived, news <-chan struct{}
	if r.onScreen {
		news = r.p.turns.heard()
		input, signals = r.p.Terminal.Input(), r.p.Terminal.Signals()
		if r.s.hidden {
			var wanted bool
			if wanted, arrived = r.p.turns.wanted(); wanted {
				return r.yield()
			}
		}
	} else {
		ready = r.turn.ready
		if !r.s.hidden {
			r.p.turns.show(r.turn)
		}
	}
	select {
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-done:
	case <-due:
		return r.timers()
	case <-looked:
		return r.looked()
	case <-arrived:
	case <-news:
		return r.above(r.p.turns.take())
	case <-ready:
		return r.openScreen()
	case in := <-input:
		return r.input(in)
	case sig := <-signals:
		return r.signal(sig)
	case e, ok := <-r.ended:
		if !ok {
			r.ended = nil
			if r.how == nil && done == nil && !r.s.late {
				return r.connectionLost()
			}
			return nil
		}
		r.how = &e
		if done == nil && !r.s.late {
			return r.waitEnded(false)
		}
	}
	return nil
}

// due is when the card has to do something by itself.
func (r *runner) due(now time.Time) (d time.Duration, ok bool) {
	sooner := func(at time.Time) {
		if !at.IsZero() && (!ok || at.Sub(now) < d) {
			d, ok = max(at.Sub(now), 0), true
		}
	}
	if tick := r.s.count.tick(now); tick > 0 && !r.s.sending {
		sooner(now.Add(tick))
	}
	sooner(r.escAt)
	if r.s.late {
		sooner(r.nextLook(now))
	} else {
		sooner(r.saveAt)
	}
	return d, ok
}

// timers does what is due.
func (r *runner) timers() error {
	now := time.Now()
	if !r.escAt.IsZero() && !now.Before(r.escAt) {
		r.escAt = time.Time{}
		if k, ok := r.dec.flush(); ok {
			r.queue = append(r.queue, k)
		}
	}
	if r.s.late {
		if at := r.nextLook(now); !at.IsZero() && !now.Before(at) {
			r.startLook()
		}
		return nil
	}
	r.saveIfDue(now)
	return nil
}

func (r *runner) saveIfDue(now time.Time) {
	if !r.saveAt.IsZero() && !now.Before(r.saveAt) {
		if err := r.saveDraft(); err != nil {
			r.s.note = err.Error() // the card goes on without
		}
	}
}

// input takes typed bytes in. While an answer is on its way keys wait, but for Ctrl+C and Ctrl+Z.
func (r *runner) input(in Input) error {
	r.feed(in.Bytes)
	if in.Err != nil {
		if r.plain && errors.Is(in.Err, io.EOF) && r.card.isQuestion() { // Ctrl+D
			return r.handOver()
		}
		return fmt.Errorf("%w: %w", ErrTerminal, in.Err)
	}
	if !r.s.sending {
		return nil
	}
	for i, k := range r.queue {
		switch k.code {
		case keyCtrlC:
			return r.do(effectInterrupt)
		case keyCtrlZ:
			r.queue = append(r.queue[:i:i], r.queue[i+1:]...)
			return r.suspend()
		}
	}
	return nil
}

func (r *runner) signal(sig os.Signal) error {
	if sig != syscall.SIGCONT {
		return nil // SIGWINCH: drawing looks at the size
	}
	// Stopped from outside and going on: the shell has set the modes.
	if err := r.p.Terminal.Resume(); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	return r.enterScreen()
}
