package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// ErrGone says that a wait has ended or never was.
var ErrGone = errors.New("the question is no longer waiting")

// Desk is where the answer to one card goes, over a client's connection. Its
// claim ends with the connection.
//
// The client's mutex guards the claim, over and the sending side of the channels.
type Desk struct {
	c      *Client
	callID string
	wait   chan time.Duration // what attaching yielded
	ended  chan question.Ended
	over   bool // ended is closed

	claimed  bool      // what is left was told, which happens once a claim
	deadline time.Time // of the claim; zero: it has none
}

// Desk is for the wait of one call. A call has one desk a client.
func (c *Client) Desk(callID string) *Desk {
	return &Desk{c: c, callID: callID, wait: make(chan time.Duration, 1), ended: make(chan question.Ended, 1)}
}

// Attach claims the wait. remaining counts from now; timed false means that
// there is no countdown. ErrGone: there is no such wait any more.
func (d *Desk) Attach(ctx context.Context) (remaining time.Duration, timed bool, err error) {
	c := d.c
	c.mu.Lock()
	switch other, ok := c.desks[d.callID]; {
	case c.over != nil:
		c.mu.Unlock()
		return 0, false, c.lost(MethodAttach, ErrNotDelivered)
	case d.over:
		c.mu.Unlock()
		return 0, false, ErrGone
	case ok && other != d:
		c.mu.Unlock()
		return 0, false, fmt.Errorf("%w: this client is attached to %s already", ErrNotDelivered, d.callID)
	}
	c.desks[d.callID] = d
	select {
	case <-d.wait: // of an attach that was given up
	default:
	}
	held, left := d.claimed, d.left()
	c.mu.Unlock()
	var r AttachResult
	if err := c.call(ctx, MethodAttach, CallParams{CallID: d.callID}, &r); err != nil {
		d.abandon(ctx, err)
		return 0, false, err
	}
	if !r.Attached {
		d.leave()
		return 0, false, ErrGone
	}
	if held {
		return left, left >= 0, nil
	}
	select {
	case remaining = <-d.wait:
		return remaining, remaining >= 0, nil
	case <-ctx.Done():
		err = fmt.Errorf("%s: %w: %w", MethodAttach, ErrLost, context.Cause(ctx))
		d.abandon(ctx, err)
		return 0, false, err
	case <-c.done:
		return 0, false, c.lost(MethodAttach, ErrLost)
	}
}

// left is what is left of a claim that is held, negative without a limit. The
// caller holds the client's mutex.
func (d *Desk) left() time.Duration {
	if d.deadline.IsZero() {
		return -1
	}
	return max(0, time.Until(d.deadline))
}

// abandon makes sure that an attach which was given up leaves no claim behind.
func (d *Desk) abandon(ctx context.Context, err error) {
	if !errors.Is(err, ErrLost) {
		d.leave()
		return
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if d.Detach(bound) != nil {
		// The owner may hold a claim that nobody serves: only the end of the connection frees it.
		_ = d.c.conn.Close()
	}
}

// end says how the wait ended; nil = the connection is lost. The caller holds the client's mutex.
func (d *Desk) end(e *question.Ended) {
	if e != nil {
		d.ended <- *e
	}
	close(d.ended)
	d.over = true
	delete(d.c.desks, d.callID)
}

func (d *Desk) leave() {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.claimed = false
	if d.c.desks[d.callID] == d {
		delete(d.c.desks, d.callID)
	}
}

// Respond is the foreground outcome. accepted is true only when the settlement
// is on disk, false when another settlement won.
func (d *Desk) Respond(ctx context.Context, answers []session.Answer) (accepted bool, err error) {
	var r AcceptResult
	err = d.c.call(ctx, MethodRespond, RespondParams{CallID: d.callID, Answers: answers}, &r)
	return r.Accepted, err
}

// Reject ends the wait with a code; accepted is as in Respond.
func (d *Desk) Reject(ctx context.Context, code string) (accepted bool, err error) {
	var r AcceptResult
	err = d.c.call(ctx, MethodRespond, RespondParams{CallID: d.callID, Error: &RejectReason{code}}, &r)
	return r.Accepted, err
}

// Late answers the question when it has become continued.
func (d *Desk) Late(ctx context.Context, answers []session.Answer) (accepted bool, err error) {
	return d.c.Answer(ctx, d.callID, answers)
}

// State is the question's state now.
func (d *Desk) State(ctx context.Context) (string, error) { return d.c.State(ctx, d.callID) }

// Detach lets the claim go. Without one it does nothing. After it, Ended stays silent.
func (d *Desk) Detach(ctx context.Context) error {
	d.leave()
	select {
	case <-d.c.done:
		return nil // the claim went with the connection
	default:
		return d.c.call(ctx, MethodDetach, CallParams{CallID: d.callID}, &Empty{})
	}
}

// Ended yields how the wait ended, at most once, and is closed after. Closed
// without a value means that the connection was lost.
func (d *Desk) Ended() <-chan question.Ended { return d.ended }

// notified hands out a notification. It is called by the reading goroutine alone.
func (c *Client) notified(method string, params json.RawMessage) error {
	switch method {
	case NoteWait:
		var n WaitNote
		if err := json.Unmarshal(params, &n); err != nil {
			return fmt.Errorf("%s is not understood: %w", method, session.PlainJSON(err))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if d := c.desks[n.CallID]; d != nil {
			remaining := time.Duration(n.RemainingMS) * time.Millisecond
			d.claimed, d.deadline = true, time.Now().Add(remaining)
			if n.RemainingMS < 0 {
				remaining, d.deadline = -1, time.Time{}
			}
			select {
			case d.wait <- remaining:
			default: // nobody waits for it
			}
		}
		return nil
	case NoteWaitEnded:
		var n WaitEndedNote
		if err := json.Unmarshal(params, &n); err != nil {
			return fmt.Errorf("%s is not understood: %w", method, session.PlainJSON(err))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if d := c.desks[n.CallID]; d != nil {
			d.end(&question.Ended{Outcome: n.Outcome, Mine: n.Mine})
		}
		return nil
	}
	return c.told(method, params)
}
