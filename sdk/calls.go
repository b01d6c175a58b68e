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
	r, err := call[struct{ SessionID, MessageID string }](ctx, c.conn, "session/prompt", message(sessionID, text))
	return r.SessionID, r.MessageID, c.why(err)
}

// Steer queues a message for the next step. It returns once that is on disk.
func (c *Client) Steer(ctx context.Context, sessionID, text string) (messageID string, err error) {
	r, err := call[struct{ MessageID string }](ctx, c.conn, "session/steer", message(sessionID, text))
	return r.MessageID, c.why(err)
}

// Cancel ends the turn in hand and, unless keepInbox, discards what is queued.
func (c *Client) Cancel(ctx context.Context, sessionID string, keepInbox bool) error {
	p := struct {
		sessionRef
		KeepInbox bool `json:"keepInbox"`
	}{sessionRef{sessionID}, keepInbox}
	_, err := call[struct{}](ctx, c.conn, "session/cancel", p)
	return c.why(err)
}

// Read yields the events of a session's log from a seq on.
func (c *Client) Read(ctx context.Context, sessionID string, fromSeq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for more, from := true, fromSeq; more; {
			p := struct {
				sessionRef
				FromSeq int64 `json:"fromSeq"`
			}{sessionRef{sessionID}, from}
			page, err := call[struct {
				Events  []Event
				NextSeq int64
				More    bool
			}](ctx, c.conn, "session/read", p)
			if err != nil {
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
	r, err := call[struct{ Sessions []Session }](ctx, c.conn, "session/list", struct{}{})
	return r.Sessions, c.why(err)
}

// CloseSession ends the work on a session and frees it; what is queued is kept.
func (c *Client) CloseSession(ctx context.Context, sessionID string) error {
	_, err := call[struct{}](ctx, c.conn, "session/close", sessionRef{sessionID})
	return c.why(err)
}

// Questions lists the questions of a session that have no answer.
func (c *Client) Questions(ctx context.Context, sessionID string) ([]OpenQuestion, error) {
	r, err := call[struct{ Active []OpenQuestion }](ctx, c.conn, "questions/list", sessionRef{sessionID})
	return r.Active, c.why(err)
}

// Answer sends a late answer. False: the question is not one that waits for it.
// A *RefusedError is REPLY_QUEUED or BAD_ANSWER.
func (c *Client) Answer(ctx context.Context, sessionID, callID string, answers []Answer) (bool, error) {
	r, err := call[accepted](ctx, c.conn, "questions/answer", answerParams{callRef{sessionID, callID}, whole(answers)})
	return r.Accepted, c.why(err)
}

// Withdraw takes a late answer back that is still queued.
func (c *Client) Withdraw(ctx context.Context, sessionID, callID string) (bool, error) {
	r, err := call[struct{ Withdrawn bool }](ctx, c.conn, "questions/withdraw", callRef{sessionID, callID})
	return r.Withdrawn, c.why(err)
}
