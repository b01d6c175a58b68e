package deepseek

import (
	"context"
	"iter"
)

type sessionRef struct {
	SessionID string `json:"sessionId"`
}

// Prompt queues a message for a turn of its own, in a new session if sessionID
// is "". It returns once the message is on disk and promises nothing more.
func (c *Client) Prompt(ctx context.Context, sessionID, text string) (session, messageID string, err error) {
	var r struct{ SessionID, MessageID string }
	err = c.conn.call(ctx, "session/prompt", message(sessionID, text), &r)
	return r.SessionID, r.MessageID, c.why(err)
}

// Steer queues a message for the next step. It returns once that is on disk.
func (c *Client) Steer(ctx context.Context, sessionID, text string) (messageID string, err error) {
	var r struct{ MessageID string }
	err = c.conn.call(ctx, "session/steer", message(sessionID, text), &r)
	return r.MessageID, c.why(err)
}

// Cancel ends the turn in hand and, unless keepInbox, discards what is queued.
func (c *Client) Cancel(ctx context.Context, sessionID string, keepInbox bool) error {
	p := struct {
		sessionRef
		KeepInbox bool `json:"keepInbox"`
	}{sessionRef{sessionID}, keepInbox}
	return c.why(c.conn.call(ctx, "session/cancel", p, &struct{}{}))
}

// Read yields the events of a session's log from a seq on.
func (c *Client) Read(ctx context.Context, sessionID string, fromSeq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for more, from := true, fromSeq; more; {
			p := struct {
				sessionRef
				FromSeq int64 `json:"fromSeq"`
			}{sessionRef{sessionID}, from}
			var page struct {
				Events  []Event
				NextSeq int64
				More    bool
			}
			if err := c.conn.call(ctx, "session/read", p, &page); err != nil {
				yield(Event{}, c.why(err))
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			from, more = page.NextSeq, page.More
		}
	}
}

// Sessions lists all sessions, the latest used first.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	var r struct{ Sessions []Session }
	err := c.conn.call(ctx, "session/list", struct{}{}, &r)
	return r.Sessions, c.why(err)
}

// CloseSession ends the work on a session and frees it; what is queued is kept.
func (c *Client) CloseSession(ctx context.Context, sessionID string) error {
	return c.why(c.conn.call(ctx, "session/close", sessionRef{sessionID}, &struct{}{}))
}

// Questions lists the questions of a session that have no answer.
func (c *Client) Questions(ctx context.Context, sessionID string) ([]OpenQuestion, error) {
	var r struct{ Active []OpenQuestion }
	err := c.conn.call(ctx, "questions/list", sessionRef{sessionID}, &r)
	return r.Active, c.why(err)
}

// Answer sends a late answer. False: the question is not one that waits for it.
// A *RefusedError is REPLY_QUEUED or BAD_ANSWER.
func (c *Client) Answer(ctx context.Context, sessionID, callID string, answers []Answer) (bool, error) {
	var r accepted
	err := c.conn.call(ctx, "questions/answer", answerParams{callRef{sessionID, callID}, whole(answers)}, &r)
	return r.Accepted, c.why(err)
}

// Withdraw takes a late answer back that is still queued.
func (c *Client) Withdraw(ctx context.Context, sessionID, callID string) (bool, error) {
	var r struct{ Withdrawn bool }
	err := c.conn.call(ctx, "questions/withdraw", callRef{sessionID, callID}, &r)
	return r.Withdrawn, c.why(err)
}
