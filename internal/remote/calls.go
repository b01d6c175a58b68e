package remote

import (
	"context"

	"deepseek/internal/session"
)

// Ping asks for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	return c.call(ctx, MethodPing, Empty{}, &Empty{})
}

// Prompt queues a message for a turn of its own and returns its id once it is on disk.
func (c *Client) Prompt(ctx context.Context, content []session.Block) (string, error) {
	return c.send(ctx, MethodPrompt, content)
}

// Steer queues a message for the next step and returns its id once it is on disk.
func (c *Client) Steer(ctx context.Context, content []session.Block) (string, error) {
	return c.send(ctx, MethodSteer, content)
}

func (c *Client) send(ctx context.Context, method string, content []session.Block) (string, error) {
	p := MessageParams{ContentBlocks: make([]ContentBlock, len(content))}
	for i, b := range content {
		p.ContentBlocks[i] = ContentBlock{Type: b.Type, Text: b.Text}
	}
	var r MessageResult
	err := c.call(ctx, method, p, &r)
	return r.MessageID, err
}

// Cancel ends the turn in hand and, unless keepInbox, discards what is queued.
func (c *Client) Cancel(ctx context.Context, keepInbox bool) error {
	return c.call(ctx, MethodCancel, CancelParams{KeepInbox: keepInbox}, &Empty{})
}

// Read returns a page of the log from a seq on.
func (c *Client) Read(ctx context.Context, fromSeq int64) (ReadResult, error) {
	var r ReadResult
	err := c.call(ctx, MethodRead, ReadParams{FromSeq: Whole(fromSeq)}, &r)
	return r, err
}

// Questions lists the questions of the session.
func (c *Client) Questions(ctx context.Context) (QuestionList, error) {
	var r QuestionList
	err := c.call(ctx, MethodQuestions, Ref{}, &r)
	return r, err
}

// Answer sends a late answer. True comes once it is on disk; false says that
// the question is not continued.
func (c *Client) Answer(ctx context.Context, callID string, answers []session.Answer) (bool, error) {
	var r AcceptResult
	err := c.call(ctx, MethodAnswer, AnswerParams{CallID: callID, Answers: answers}, &r)
	return r.Accepted, err
}

// Withdraw takes a queued late answer back.
func (c *Client) Withdraw(ctx context.Context, callID string) (bool, error) {
	var r WithdrawResult
	err := c.call(ctx, MethodWithdraw, CallParams{CallID: callID}, &r)
	return r.Withdrawn, err
}

// States of a question as State tells them.
const (
	StateOpen      = "open"
	StateContinued = "continued"
	StateSettled   = "settled"
	StateRemoved   = "removed"
)

// State is the state of one question: StateRemoved if nothing of it is known.
func (c *Client) State(ctx context.Context, callID string) (string, error) {
	list, err := c.Questions(ctx)
	if err != nil {
		return "", err
	}
	for _, q := range list.Active {
		if q.CallID == callID {
			return q.State, nil
		}
	}
	for _, w := range list.Waits {
		if w.CallID == callID {
			return StateOpen, nil
		}
	}
	for _, q := range list.Settled {
		if q.CallID == callID {
			return StateSettled, nil
		}
	}
	return StateRemoved, nil
}
