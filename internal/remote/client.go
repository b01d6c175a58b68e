package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Errors of a call that the other side has not answered.
var (
	// ErrNotDelivered: the request has not reached the session and has no effect.
	ErrNotDelivered = errors.New("the request was not delivered")
	// ErrLost: the request was sent and no answer came. It may have taken effect.
	ErrLost = errors.New("the connection was lost; whether the request took effect is not known")
)

// clientLine is the longest line that a client takes: a page with one event
// that fills a line of its own.
const clientLine = 256 << 20

// Client is a connection to the owner of a live session. It pings by itself, so
// that a process which is stopped loses its claims. All methods may be called
// from any goroutine.
//
// A refusal of the other side is an *Error; else a failed call is ErrNotDelivered
// or ErrLost. The client of the JSON-RPC library would not do: it hands out
// notifications out of order and does not say whether a request was written.
//
// mu guards what the calls and the reading goroutine share. The write lock is a
// channel, so that a call can stop waiting for it.
type Client struct {
	conn    net.Conn
	writing chan struct{}       // holds the write lock's token
	redact  func([]byte) []byte // nil: nothing is taken out
	cancel  context.CancelFunc
	done    chan struct{} // closed when reading has ended
	wg      sync.WaitGroup

	mu      sync.Mutex
	lastID  int64
	pending map[int64]chan answer
	desks   map[string]*Desk
	sub     *Subscription
	reason  *Error // the last thing the other side said about the connection itself
	over    error  // why reading has ended
}

// DialOption is for Dial.
type DialOption func(*Client)

// WithRedact sets what every line that the owner sends goes through, so that the
// caller is not told what it is not to show. redact must not change its argument.
func WithRedact(redact func([]byte) []byte) DialOption {
	return func(c *Client) { c.redact = redact }
}

// Dial connects to an owner's socket and makes sure that the owner answers.
// A failure is an *Error if the owner refused, else ErrNotDelivered.
func Dial(ctx context.Context, path string, options ...DialOption) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDelivered, err)
	}
	c := newClient(ctx, conn, options...)
	if err := c.Ping(ctx); err != nil {
		closing := c.Close()
		var refused *Error
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, fmt.Errorf("%w: the owner of the session does not answer: %w", ErrNotDelivered, errors.Join(cause(ctx, err), closing))
	}
	return c, nil
}

// cause is why ctx ended, or else err.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// Life is what a socket shows of its owner.
type Life int

// What a socket shows.
const (
	Dead    Life = iota // nobody answers
	Leaving             // the owner's work is over: it takes nothing more, but has the session still
	Live
)

// LifeAt asks for a sign of life at a socket, within ctx and a second. An owner
// that refuses this process gives one too.
func LifeAt(ctx context.Context, path string) Life {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := Dial(ctx, path)
	var refused *Error
	switch {
	case err == nil:
		_ = c.Close() // it was only asked for a sign of life
		return Live
	case !errors.As(err, &refused):
		return Dead
	case refused.Code == CodeOwnerLeaving:
		return Leaving
	}
	return Live
}

// Probe tells whether an owner is there, as LifeAt does.
func Probe(ctx context.Context, path string) bool { return LifeAt(ctx, path) != Dead }

// newClient serves a connection. It outlives ctx.
func newClient(ctx context.Context, conn net.Conn, options ...DialOption) *Client {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &Client{
		conn: conn, writing: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
		pending: map[int64]chan answer{}, desks: map[string]*Desk{},
	}
	for _, option := range options {
		option(c)
	}
	c.writing <- struct{}{}
	c.wg.Go(c.read)
	c.wg.Go(func() { c.beat(ctx) })
	return c
}

// Close ends the connection and returns when nothing of it is left running.
// Claims are let go, calls in hand end.
func (c *Client) Close() error {
	c.cancel()
	err := c.conn.Close()
	c.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Done is closed when the connection has ended, whatever ended it.
func (c *Client) Done() <-chan struct{} { return c.done }

// beat pings until the connection ends.
func (c *Client) beat(ctx context.Context) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		case <-c.done:
			return
		}
		c.mu.Lock()
		c.lastID++
		line := request(c.lastID, MethodPing, nil)
		c.mu.Unlock()
		bound, cancel := context.WithTimeout(ctx, pingEvery)
		// If it cannot be written the other side does not read: the next one is tried.
		_ = c.write(bound, line)
		cancel()
	}
}

// clean tells whether the owner ended the connection in good order.
func (c *Client) clean() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason == nil && errors.Is(c.over, io.EOF)
}
