package deepseek

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Handler gives one answer a question, or nil to leave the questions to others
// or to their time; for an approval or a plan review nil is a no. It may take as
// long as it likes: at the end of a timed question's wait the agent goes on, and
// the answer is then sent as a late one. ctx ends with the client.
//
// If it fails, or its answers do not fit, a timed question is left to its time.
// What has no time to end it is closed without an answer, which is a no to an
// approval.
type Handler func(ctx context.Context, q QuestionRequest) ([]Answer, error)

type waitKey struct{ sessionID, callID string }

// wait is one foreground wait that the client has asked for a claim on.
type wait struct {
	request QuestionRequest
	handler Handler
	ended   chan string // gets how the wait ended, once, unless the claim was let go
}

// ask has a question answered. With the claim this client owns the countdown:
// at zero it gives the question up, which then goes pending. An answer that
// comes later, or loses to the end of its time, is sent as a late answer, once.
func (c *Client) ask(ctx context.Context, w *wait) {
	type outcome struct {
		answers []Answer
		err     error
	}
	answered := make(chan outcome, 1)
	c.work.Go(func() {
		o := outcome{err: errors.New("it ended its goroutine")}
		defer func() { answered <- o }()
		o.answers, o.err = w.call(ctx)
	})
	var zero <-chan time.Time
	if w.request.RemainingMS >= 0 {
		t := time.NewTimer(time.Duration(w.request.RemainingMS) * time.Millisecond)
		defer t.Stop()
		zero = t.C
	}
	claimed, ended, late := true, w.ended, true
	for {
		select {
		case o := <-answered:
			c.failed(w, c.settle(ctx, w, o.answers, o.err, claimed, late, ended))
			return
		case <-zero:
			claimed = false
			_, err := call[accepted](ctx, c.conn, "questions/respond", respondParams{w.ref(), nil, &rejection{"ASK_TIMED_OUT"}})
			c.failed(w, err)
		case how := <-ended:
			claimed, ended, zero, late = false, nil, nil, how == "pending"
		case <-ctx.Done():
			return
		}
	}
}

func (w *wait) call(ctx context.Context) (answers []Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return w.handler(ctx, w.request)
}

func (w *wait) ref() callRef { return callRef{w.request.SessionID, w.request.CallID} }

// settle takes the handler's answers to the agent: as the outcome of the wait
// while the claim holds, else as a late answer if the wait ended by its time.
func (c *Client) settle(ctx context.Context, w *wait, answers []Answer, err error, claimed, late bool, ended <-chan string) error {
	if err != nil || answers == nil {
		c.failed(w, err) // before the agent may go on and the run end
		if claimed {
			return c.giveUp(ctx, w, err != nil)
		}
		return nil
	}
	answers = whole(answers)
	if claimed {
		r, err := call[accepted](ctx, c.conn, "questions/respond", respondParams{w.ref(), answers, nil})
		if err != nil {
			c.failed(w, err)
			return c.giveUp(ctx, w, true)
		}
		if r.Accepted {
			return nil
		}
		select { // another settlement has won: which one is told
		case how := <-ended:
			late = how == "pending"
		case <-ctx.Done():
			return nil
		}
	}
	if !late {
		return nil
	}
	_, err = call[accepted](ctx, c.conn, "questions/answer", answerParams{w.ref(), answers})
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Code == "REPLY_QUEUED" {
		return nil // somebody else's answer was first
	}
	return err
}

// giveUp ends what is not answered here. A wait with a time is left to that and
// to other clients, and so is a question that the handler passes on. Without a time
// a handler that has failed would hold the run for ever, so its wait is closed; and
// no answer to an approval is a no.
func (c *Client) giveUp(ctx context.Context, w *wait, failed bool) error {
	permits := w.request.Kind == KindApproval || w.request.Kind == KindPlanReview
	if w.request.Timed || !failed && !permits {
		return c.detach(ctx, w)
	}
	_, err := call[accepted](ctx, c.conn, "questions/respond", respondParams{w.ref(), nil, &rejection{"ASK_CANCELLED"}})
	return err
}

func (c *Client) detach(ctx context.Context, w *wait) error {
	c.mu.Lock()
	delete(c.waits, waitKey{w.request.SessionID, w.request.CallID})
	c.mu.Unlock()
	_, err := call[struct{}](ctx, c.conn, "questions/detach", w.ref())
	return err
}

// failed notes for the runs of the session that a handler failed. The end of the
// client is no failure of a handler.
func (c *Client) failed(w *wait, err error) {
	var died *ServerError
	if err == nil || c.ctx.Err() != nil || errors.As(err, &died) || errors.Is(err, ErrClosed) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.runs {
		if r.sessionID == w.request.SessionID && r.failure == nil {
			r.failure = &HandlerError{err}
		}
	}
}

// whole makes every list of labels one that is there.
func whole(answers []Answer) []Answer {
	out := make([]Answer, len(answers))
	for i, a := range answers {
		if a.Selected == nil {
			a.Selected = []string{}
		}
		out[i] = a
	}
	return out
}
