package question

import (
	"context"
	"time"

	"deepseek/internal/session"
)

// Claim is a client's hold on a wait. While anybody holds one the host's timer
// rests and the client owns the countdown. A client keeps its claim until its
// outcome has been accepted, and lets go of it when it hands over.
//
// All methods are safe for concurrent use. The service's mutex owns detached
// and the sending side of ended.
type Claim struct {
	service  *Service
	wait     *wait
	card     Card
	detached bool
	ended    chan Ended
}

// Remaining is the time to the original deadline as it stood at the attach;
// negative: there is none.
func (c *Claim) Remaining() time.Duration { return c.card.Remaining }

// Card is what is to be drawn.
func (c *Claim) Card() Card { return c.card }

// Ended yields how the wait ended and is closed then. It is closed without a
// value by Detach.
func (c *Claim) Ended() <-chan Ended { return c.ended }

// Detach lets the claim go. It does nothing when the wait has ended or the
// claim is gone already.
func (c *Claim) Detach() {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	if c.detached || c.wait.state == done {
		return
	}
	c.detached = true
	close(c.ended)
	c.wait.detach(c)
}

// Respond answers. accepted is true only when the answer is the wait's one
// settlement and on disk, false when another settlement has won. A batch that
// does not answer the questions is BAD_ANSWER and the wait goes on. Once the
// settlement has begun, ctx does not stop it.
func (c *Claim) Respond(ctx context.Context, answers []session.Answer) (accepted bool, err error) {
	bad := CheckAnswers(c.card.Kind, c.card.Questions, answers)
	return c.settle(ctx, bad, func() Outcome { return Outcome{Answers: inOrder(c.card.Questions, answers)} })
}

// Reject ends the wait without an answer: ASK_TIMED_OUT, the client's own
// countdown, makes a timed wait pending; ASK_CANCELLED closes any, and its
// question with it. accepted and ctx are as in Respond.
func (c *Claim) Reject(ctx context.Context, code string) (accepted bool, err error) {
	var bad *Error
	o := Outcome{Pending: true}
	switch {
	case code == CodeTimedOut && c.card.Timed:
	case code == CodeCancelled:
		o = Outcome{Err: errorf(CodeCancelled, "the person closed the question without an answer. %s.", notAnswered)}
	case code == CodeTimedOut:
		bad = errorf(CodeBadOutcome, "%s: this wait has no deadline, only an answer or %s ends it", code, CodeCancelled)
	default:
		bad = errorf(CodeBadOutcome, "%q is no code that ends a wait; there are %s and %s", code, CodeTimedOut, CodeCancelled)
	}
	return c.settle(ctx, bad, func() Outcome { return o })
}

func (c *Claim) settle(ctx context.Context, bad *Error, outcome func() Outcome) (accepted bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s, w := c.service, c.wait
	s.mu.Lock()
	switch {
	case c.detached:
		s.mu.Unlock()
		return false, errorf(CodeNoClaim, "no claim is held on %s: attach to its wait first", c.card.CallID)
	case w.state != open:
		s.mu.Unlock()
		select {
		case <-w.done: // who lost is told when the winner is on disk
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	case bad != nil:
		s.mu.Unlock()
		return false, bad
	}
	w.begin()
	s.mu.Unlock()
	if err := s.finish(w, outcome(), c); err != nil {
		return false, err
	}
	return true, nil
}
