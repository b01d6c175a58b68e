package question

import "time"

// wait is the foreground wait of one call:
//
//	open ──► settling ──► done
//
// In open, clients may claim it and one settlement may begin. In settling, that
// settlement is being written to disk; nobody has been told of it and no other
// can win. In done, it is out of the registry and holds no timer and no claim.
//
// Its one owner is the service's mutex: all methods are called with it held, and
// none blocks. The goroutine that asks watches wake, done and its own context;
// the settlement of a client runs on the client's goroutine.
type wait struct {
	req      Request
	card     Card // Remaining is not kept
	deadline time.Time
	clock    Clock

	state     state
	announced bool // watchers were told; before that time cannot end the wait
	claims    map[*Claim]struct{}
	stopTimer func() bool   // nil: the host's timer is not running
	wake      chan struct{} // 1: the goroutine that asks should look at the wait again
	done      chan struct{} // closed in done, when outcome is set
	outcome   Outcome
}

type state int

const (
	open state = iota
	settling
	done
)

// newWait begins a wait; without a bound it ends by an outcome only.
func newWait(clock Clock, sessionID string, r Request, bounded bool, length time.Duration) *wait {
	w := &wait{
		req: r, clock: clock, claims: map[*Claim]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
		card: Card{SessionID: sessionID, CallID: r.CallID, Kind: r.Kind, Timed: bounded, Questions: r.Questions, Intent: r.Intent},
	}
	if bounded {
		w.deadline = clock.Now().Add(length)
	}
	return w
}

// announce lets the host's timer run from now on. The deadline is the original one.
func (w *wait) announce() {
	w.announced = true
	w.rearm()
	w.nudge()
}

// remaining is the time to the original deadline, negative where there is none.
func (w *wait) remaining() time.Duration {
	if !w.card.Timed {
		return -1
	}
	return max(0, w.deadline.Sub(w.clock.Now()))
}

func (w *wait) snapshot() Card {
	c := w.card
	c.Remaining = w.remaining()
	return c
}

// due tells whether the host ends the wait now: nobody holds a claim and the deadline has passed.
func (w *wait) due() bool {
	return w.state == open && w.announced && w.card.Timed && len(w.claims) == 0 && !w.clock.Now().Before(w.deadline)
}

// unclaimed tells whether a wait without a bound has nobody who answers it.
func (w *wait) unclaimed() bool { return w.state == open && !w.card.Timed && len(w.claims) == 0 }

// rearm makes the host's timer run just while nobody holds a claim.
func (w *wait) rearm() {
	if w.stopTimer != nil {
		w.stopTimer()
		w.stopTimer = nil
	}
	if w.state != open || !w.announced || !w.card.Timed || len(w.claims) > 0 {
		return
	}
	if left := w.remaining(); left > 0 {
		w.stopTimer = w.clock.AfterFunc(left, w.nudge)
	} else {
		w.nudge()
	}
}

func (w *wait) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// attach makes a claim; false when the wait has ended or is about to.
func (w *wait) attach(s *Service) (*Claim, bool) {
	if w.state != open || w.due() {
		return nil, false
	}
	c := &Claim{service: s, wait: w, card: w.snapshot(), ended: make(chan Ended, 1)}
	w.claims[c] = struct{}{}
	w.rearm()
	return c, true
}

// detach lets a claim go. Losing the last one restores the original deadline.
func (w *wait) detach(c *Claim) {
	delete(w.claims, c)
	if len(w.claims) == 0 {
		w.rearm()
		w.nudge()
	}
}

// begin takes the one settlement; false when another has it.
func (w *wait) begin() bool {
	if w.state != open {
		return false
	}
	w.state = settling
	w.rearm()
	return true
}

// finish ends the wait for everybody who holds a claim.
func (w *wait) finish(o Outcome, by *Claim) {
	w.state, w.outcome = done, o
	for c := range w.claims {
		c.ended <- Ended{Outcome: o.word(), Mine: c == by, Answers: o.Answers}
		close(c.ended)
	}
	w.claims = nil
	close(w.done)
}
