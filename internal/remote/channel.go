package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
)

// channel feeds a jrpc2 server one request at a time: Recv hands out the next
// line only when the last request has been answered, and the end of the input
// only then too. So requests take effect in the order of their arrival, and
// what was read before the end is answered.
//
// Recv is the server's reading goroutine's; Send may come from any. mu guards
// the request in hand.
type channel struct {
	in  *lineReader
	out *outbox
	// gone tells whether the client has closed its connection for good: what it
	// asked for and was not begun is then dropped. May be nil.
	gone func() bool
	quit context.Context // ends with the connection: nothing more is handed out

	mu     sync.Mutex
	busy   bool   // a request is out and not dealt with
	params []byte // of the request that is out
	result []byte
	after  []func()

	answered chan struct{} // holds a token after an answer
}

func newChannel(quit context.Context, in *lineReader, out *outbox, gone func() bool) *channel {
	return &channel{in: in, out: out, gone: gone, quit: quit, answered: make(chan struct{}, 1)}
}

// Recv implements the receiving half of a jrpc2 channel.
func (c *channel) Recv() ([]byte, error) {
	for {
		if !c.idle() {
			// The request in hand is answered whatever happens to the connection.
			<-c.answered
			continue
		}
		for _, f := range c.takeAfter() {
			f()
		}
		// A client that does not read its answers gets no more of them.
		if c.out.settle(c.quit) != nil || c.quit.Err() != nil {
			return nil, io.EOF
		}
		line, ok, err := c.in.take()
		switch {
		case ok:
		case err != nil:
			return nil, io.EOF
		default:
			select {
			case <-c.in.more:
			case <-c.quit.Done():
			}
			continue
		}
		members, r := checkLine(line, c.in.lim.line)
		if r != nil {
			if c.out.push(errorLine(r.id, r.err)) != nil {
				return nil, io.EOF
			}
			continue
		}
		if len(bytes.TrimSpace(line.text)) == 0 {
			continue
		}
		if c.gone != nil && c.gone() {
			return nil, io.EOF
		}
		text, params := withoutParams(members)
		c.mu.Lock()
		c.busy, c.params = true, params
		c.mu.Unlock()
		return text, nil
	}
}

// takeParams are the parameters of the request in hand, nil if it has none. They
// are for its handler, once.
func (c *channel) takeParams() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	params := c.params
	c.params = nil
	return params
}

func (c *channel) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.busy
}

// Send implements the sending half of a jrpc2 channel. All that the server
// sends through it are answers.
func (c *channel) Send(line []byte) error {
	c.mu.Lock()
	result := c.result
	c.result = nil
	c.mu.Unlock()
	if head, ok := bytes.CutSuffix(line, []byte(`"result":null}`)); ok && result != nil {
		line = append(append(head, `"result":`...), append(result, '}')...)
	}
	err := c.out.push(line)
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
	signal(c.answered)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// settled says that the request in hand was a notification and has been dealt with.
func (c *channel) settled() {
	c.mu.Lock()
	c.busy, c.result = false, nil
	c.mu.Unlock()
	signal(c.answered)
}

// Close implements jrpc2's channel. The connection is its owner's to close,
// after the last answer has been written.
func (c *channel) Close() error { return nil }

// setResult is the result of the request in hand, whose handler then returns
// nil. It goes out byte for byte; the server would encode it again and escape
// what the log does not.
func (c *channel) setResult(result []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = result
}

// afterAnswer has f called once the request in hand is answered and before the
// next is handed out. Only its handler may ask for that.
func (c *channel) afterAnswer(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = append(c.after, f)
}

func (c *channel) takeAfter() []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	fs := c.after
	c.after = nil
	return fs
}
