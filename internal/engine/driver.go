package engine

import (
	"context"
	"errors"

	"deepseek/internal/session"
)

// Canceled is the cause of a cancelled turn.
type Canceled struct{ Cause session.Cause }

func (c *Canceled) Error() string { return "cancelled by " + c.Cause.Kind }

// Status observes the whole agent.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// WhenIdle returns when no driver is scheduled or active. It settles no message.
func (a *Agent) WhenIdle(ctx context.Context) error {
	for {
		a.mu.Lock()
		idle := a.idle
		a.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		a.mu.Lock()
		still := a.status == Idle
		a.mu.Unlock()
		if still {
			return nil
		}
	}
}

// Cancel ends the turn in hand, if there is one, as aborted with the cause.
// Unless keepInbox, what is queued is discarded, which is refused with ErrLeaving
// when the owner goes. It returns once that is on disk.
func (a *Agent) Cancel(ctx context.Context, cause session.Cause, keepInbox bool) error {
	a.mu.Lock()
	if a.leaving && !keepInbox {
		a.mu.Unlock()
		return ErrLeaving
	}
	switch {
	case a.cancel != nil:
		a.cancel(&Canceled{cause})
	case a.status == Running:
		a.cancelNext = true
	}
	var err error
	if !keepInbox {
		for _, target := range []string{session.NextStep, session.NextTurn} {
			if n := a.state.Inbox.Len(target); n > 0 && err == nil {
				err = a.put(item{session.TypeInboxSpliced, session.InboxSpliced{
					Target: target, RemovedCount: n, Inserted: []session.UserMessage{}, Outcome: session.OutcomeCanceled,
				}})
			}
		}
	}
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return a.sync(ctx)
}

// Leave decides, under the inbox lock, that the owner goes: no driver runs and
// nothing is owed, or the driver rests. From then on messages are refused with
// ErrLeaving. False means that there is work to wait for first.
func (a *Agent) Leave() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leave()
}

func (a *Agent) leave() bool {
	if a.status != Idle {
		return false
	}
	a.leaving = true
	return true
}

// Left tells whether the owner has decided to go.
func (a *Agent) Left() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaving
}

// wake schedules the driver. The caller holds mu.
func (a *Agent) wake() {
	a.resting = false
	if a.status == Running || a.failure != nil {
		return
	}
	a.setStatus(Running)
	go a.drive()
}

// setStatus tells everybody. The caller holds mu.
func (a *Agent) setStatus(s Status) {
	a.status = s
	if s == Running {
		a.idle = make(chan struct{})
		a.steps = 0
	} else {
		close(a.idle)
	}
	for f := range a.feeds {
		f.push(FeedItem{Status: s}, a.state.Next)
	}
}

// drive runs turns until nothing is owed, and then the rounds of the goal, one
// at a time. It is the only goroutine that drives: wake starts it when the agent
// is idle, and it becomes idle under the lock that wake needs.
func (a *Agent) drive() {
	for {
		for a.takeTurn() {
		}
		// Whoever waits for idleness may rely on the log.
		_ = a.sync(context.Background()) // an error is kept as a.failure
		a.mu.Lock()
		if !a.owes() && !a.queueRound() {
			a.setStatus(Idle)
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
}

// takeTurn runs the turn that is owed; false if none is. What it takes up is the
// turn in hand from the moment it is found owed, so that no Cancel falls between.
func (a *Agent) takeTurn() bool {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a.mu.Lock()
	owed, n := a.owes(), a.state.Turns.Turn+1
	if owed {
		a.cancel = cancel
	}
	a.mu.Unlock()
	if !owed {
		return false
	}
	end, err := a.turn(ctx, n)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel = nil
	switch {
	case err != nil: // the log failed, and a.failure says so
	case end == session.EndError, end == session.EndAborted, end == session.EndMaxSteps:
		a.resting = true
	case ctx.Err() != nil: // cancelled too late to show in the turn's end
		a.resting = true
	}
	return true
}

// owes tells whether there is a turn to run. Instructions for agents wait for one
// and make none. The caller holds mu.
func (a *Agent) owes() bool {
	if a.cancelNext {
		a.cancelNext, a.resting = false, true
	}
	return a.failure == nil && !a.resting && a.state.Inbox.Waiting()
}

// cause says as what a turn whose context ended is to be logged.
func cause(ctx context.Context) session.Cause {
	var c *Canceled
	if errors.As(context.Cause(ctx), &c) {
		return c.Cause
	}
	return session.Cause{Kind: session.CauseDisposed}
}
