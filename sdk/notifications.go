package deepseek

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// Notifications about claims, which are not handed out.
const (
	noteWait      = "questions/wait"
	noteWaitEnded = "questions/waitEnded"
)

const behind = 100_000 // notifications that may wait for an iterator

// feed is a queue of notifications for one iterator. The client's mutex guards it.
type feed struct {
	sessionID string
	queue     []Notification
	over      error // ends the iteration behind the queue; ErrClosed: quietly
	wake      chan struct{}
}

// Events yields what the server tells from this call on, of one session or,
// with "", of all. It ends with the client, and otherwise with an error: that of
// ctx, *ServerError or ErrSlowConsumer. It is for one range statement, which is to come.
func (c *Client) Events(ctx context.Context, sessionID string) iter.Seq2[Notification, error] {
	f := &feed{sessionID: sessionID, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	if f.over = c.over; f.over == nil {
		c.feeds[f] = struct{}{}
	}
	c.mu.Unlock()
	return func(yield func(Notification, error) bool) {
		defer func() {
			c.mu.Lock()
			delete(c.feeds, f)
			c.mu.Unlock()
		}()
		for {
			c.mu.Lock()
			queue, over := f.queue, f.over
			f.queue = nil
			c.mu.Unlock()
			for _, n := range queue {
				if !yield(n, nil) {
					return
				}
			}
			if len(queue) > 0 {
				continue
			}
			if over != nil {
				if !errors.Is(over, ErrClosed) {
					yield(Notification{}, over)
				}
				return
			}
			select {
			case <-f.wake:
			case <-ctx.Done():
				yield(Notification{}, context.Cause(ctx))
				return
			}
		}
	}
}

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// notified takes a notification, in the reading goroutine.
func (c *Client) notified(method string, params json.RawMessage) error {
	var p struct {
		SessionID   string
		Event       *Event
		Status      string
		CallID      string
		Kind        string
		Questions   []Question
		Timed       bool
		RemainingMS int64
		Outcome     string
	}
	if err := json.Unmarshal(params, &p); err != nil {
		if _, known := notes[method]; known {
			return fmt.Errorf("%s: %w", method, err)
		}
		return nil // of a later version of the protocol
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch method {
	case NoteEvent, NoteStatus:
		c.feedRuns(p.SessionID, told{p.Event, p.Status})
	case NoteQuestion:
		c.claim(QuestionRequest{SessionID: p.SessionID, CallID: p.CallID, Kind: p.Kind, Questions: p.Questions, Timed: p.Timed})
	case noteWait:
		if w := c.waits[waitKey{p.SessionID, p.CallID}]; w != nil && c.over == nil {
			w.request.RemainingMS = p.RemainingMS
			c.work.Go(func() { c.ask(c.ctx, w) })
		}
		return nil
	case noteWaitEnded:
		key := waitKey{p.SessionID, p.CallID}
		if w := c.waits[key]; w != nil {
			delete(c.waits, key)
			w.ended <- p.Outcome
		}
		return nil
	}
	note := Notification{Method: method, SessionID: p.SessionID, Params: params, Event: p.Event}
	for f := range c.feeds {
		switch {
		case f.sessionID != "" && f.sessionID != p.SessionID:
			continue
		case len(f.queue) >= behind:
			f.over = ErrSlowConsumer
			delete(c.feeds, f)
		default:
			f.queue = append(f.queue, note)
		}
		f.poke()
	}
	return nil
}

// feedRuns hands an event or a status to the runs of a session. The caller holds mu.
func (c *Client) feedRuns(sessionID string, t told) {
	for r := range c.runs {
		if r.sessionID != sessionID || r.broken != nil {
			continue
		}
		done, err := r.feed(t)
		c.fed(r, done, err)
	}
}

// claim asks for a claim on a wait that somebody here can answer. The caller holds mu.
func (c *Client) claim(q QuestionRequest) {
	h := c.handlers[q.Kind]
	if h == nil || c.over != nil {
		return
	}
	key := waitKey{q.SessionID, q.CallID}
	c.waits[key] = &wait{request: q, handler: h, ended: make(chan string, 1)}
	var v struct{ Attached bool }
	attached := c.conn.send("questions/attachWait", callRef{q.SessionID, q.CallID}, into(&v))
	c.work.Go(func() {
		if err := <-attached; err == nil && v.Attached {
			return // questions/wait comes behind it
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, key)
	})
}

// ended takes the end of the server, in the connection's last goroutine.
func (c *Client) ended(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = why
	}
	c.cancel()
	for r := range c.runs {
		select {
		case <-r.done:
		default:
			close(r.done)
		}
	}
	for f := range c.feeds {
		f.over = c.over
		f.poke()
	}
	clear(c.waits)
	clear(c.feeds)
}
