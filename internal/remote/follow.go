package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"deepseek/internal/session"
)

// maxBehind is how many bytes of notices may wait for a subscriber, and
// maxDeltas of them when text that streams is left out.
const (
	maxBehind = 64 << 20
	maxDeltas = 4 << 20
)

// Subscription tells what happens in a session: the events of the log from a
// seq on, in order and without gaps, first those that are there and then each
// once it is on disk; the status; text as it streams; questions that open and
// settle. Next is for one goroutine; the client's mutex guards the queue.
type Subscription struct {
	c      *Client
	header session.Header
	past   []json.RawMessage // of the page in hand
	from   int64             // where the next page begins
	more   bool              // there is a next page
	next   int64             // seq of the next event

	queue []Notice
	size  int
	wake  chan struct{} // holds a token after a change of queue
}

// Subscribe begins with the event at a seq. A client has one subscription; a
// later one takes its place.
func (c *Client) Subscribe(ctx context.Context, fromSeq int64) (*Subscription, error) {
	s := &Subscription{c: c, from: fromSeq, more: true, next: fromSeq, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	c.sub = s
	c.mu.Unlock()
	if err := s.turn(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Header is the session's.
func (s *Subscription) Header() session.Header { return s.header }

// turn fetches the next page. With the last one the notifications begin.
func (s *Subscription) turn(ctx context.Context) error {
	page, err := s.c.Read(ctx, s.from)
	if err != nil {
		return err
	}
	s.header, s.past, s.more, s.from = page.Header, page.Events, page.More, page.NextSeq
	return nil
}

// Next returns what comes next. io.EOF says that the owner has left; any other
// error that the connection or the call failed.
func (s *Subscription) Next(ctx context.Context) (Notice, error) {
	for {
		for len(s.past) > 0 {
			n := Notice{Seq: s.from - int64(len(s.past)), Event: s.past[0]}
			s.past = s.past[1:]
			if s.due(n) {
				return n, nil
			}
		}
		if s.more {
			if err := s.turn(ctx); err != nil {
				return Notice{}, err
			}
			continue
		}
		n, ok := s.pop()
		if ok {
			if s.due(n) {
				return n, nil
			}
			continue
		}
		select {
		case <-s.wake:
			continue
		case <-ctx.Done():
			return Notice{}, context.Cause(ctx)
		case <-s.c.done:
		}
		if n, ok := s.pop(); ok {
			if s.due(n) {
				return n, nil
			}
			continue
		}
		if s.c.clean() {
			return Notice{}, io.EOF
		}
		return Notice{}, s.c.lost("follow the session", errors.New("the connection was lost"))
	}
}

// due tells whether a notice is to be handed out: not an event for the second time.
func (s *Subscription) due(n Notice) bool {
	if n.Event == nil {
		return true
	}
	if n.Seq < s.next {
		return false
	}
	s.next = n.Seq + 1
	return true
}

func (s *Subscription) pop() (Notice, bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if len(s.queue) == 0 {
		return Notice{}, false
	}
	n := s.queue[0]
	s.queue = s.queue[1:]
	s.size -= n.weight()
	return n, true
}

// weight is about how many bytes a notice takes.
func (n Notice) weight() int {
	w := 200 + len(n.Event)
	if n.Delta != nil {
		w += len(n.Delta.Text)
	}
	return w
}

// told queues a notification for the subscriber, if there is one. A subscriber
// that is too far behind ends the connection: it could not be told everything.
func (c *Client) told(method string, params json.RawMessage) error {
	n, known, err := notice(method, params)
	if err != nil {
		return fmt.Errorf("%s is not understood: %w", method, session.PlainJSON(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sub
	if s == nil || !known || n.Delta != nil && s.size > maxDeltas {
		return nil
	}
	if s.size > maxBehind {
		return errors.New("this program was too slow to follow the session")
	}
	s.queue = append(s.queue, n)
	s.size += n.weight()
	signal(s.wake)
	return nil
}

// notice decodes a notification. One of a later version of the protocol is not known.
func notice(method string, params json.RawMessage) (n Notice, known bool, err error) {
	switch method {
	case NoteEvent:
		var v EventNote
		var e struct {
			Seq int64 `json:"seq"`
		}
		if err = json.Unmarshal(params, &v); err == nil {
			err = json.Unmarshal(v.Event, &e)
		}
		n = Notice{Seq: e.Seq, Event: v.Event}
	case NoteStatus:
		var v StatusNote
		err = json.Unmarshal(params, &v)
		n.Status = v.Status
	case NoteDelta:
		n.Delta = &Delta{}
		err = json.Unmarshal(params, n.Delta)
	case NoteRequest:
		n.Request = &RequestNote{}
		err = json.Unmarshal(params, n.Request)
	case NoteSettled:
		n.Settled = &SettledNote{}
		err = json.Unmarshal(params, n.Settled)
	default:
		return Notice{}, false, nil
	}
	return n, true, err
}
