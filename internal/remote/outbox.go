package remote

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"

	"deepseek/internal/session"
)

// errOver refuses a line for a connection that has ended.
var errOver = errors.New("the connection has ended")

// errTooSlow is why a client is dropped that does not read.
var errTooSlow = refuse(CodeClientTooSlow, "the client did not read what it was sent and was dropped")

// outbox is the bounded queue of what goes to one client. Its goroutine, run,
// writes; everybody else only queues, at once or as long as their context lasts.
// mu guards all fields.
type outbox struct {
	lim    limits
	onDrop func() // unblocks a write in progress; called once, without mu

	mu    sync.Mutex
	lines [][]byte // with their ends
	begun bool     // the first of lines is the rest of one
	size  int      // bytes in lines and in the write in progress
	ended bool     // nothing may be queued any more; run ends when lines is empty
	drop  error    // why the client was dropped
	space chan struct{}

	wake chan struct{} // holds a token after a change that run may wait for
}

func newOutbox(lim limits, onDrop func()) *outbox {
	return &outbox{lim: lim, onDrop: onDrop, wake: make(chan struct{}, 1)}
}

// push queues a line at once. A client that is far behind is dropped for it.
func (o *outbox) push(line []byte) error {
	o.mu.Lock()
	if !o.ended && o.size > 2*o.lim.queue+o.lim.page {
		o.mu.Unlock()
		o.dropFor(errTooSlow)
		return errTooSlow
	}
	defer o.mu.Unlock()
	return o.add(line)
}

// pushOptional queues a line unless the client is behind.
func (o *outbox) pushOptional(line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && o.size > o.lim.queue/2 {
		return nil
	}
	return o.add(line)
}

// pushWait queues a line when there is room for it. A client that frees none
// for too long is dropped.
func (o *outbox) pushWait(ctx context.Context, line []byte) error {
	for {
		o.mu.Lock()
		if o.ended || o.size <= o.lim.queue {
			err := o.add(line)
			o.mu.Unlock()
			return err
		}
		space := o.waiting()
		o.mu.Unlock()
		if err := o.await(ctx, space); err != nil {
			return err
		}
	}
}

// settle returns when the client is not behind any more.
func (o *outbox) settle(ctx context.Context) error {
	for {
		o.mu.Lock()
		if o.ended || o.size <= o.lim.queue {
			o.mu.Unlock()
			return nil
		}
		space := o.waiting()
		o.mu.Unlock()
		if err := o.await(ctx, space); err != nil {
			return err
		}
	}
}

// waiting is closed with the next write that ends. The caller holds mu.
func (o *outbox) waiting() chan struct{} {
	if o.space == nil {
		o.space = make(chan struct{})
	}
	return o.space
}

func (o *outbox) await(ctx context.Context, space chan struct{}) error {
	t := time.NewTimer(o.lim.stall)
	defer t.Stop()
	select {
	case <-space:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		o.dropFor(errTooSlow)
		return errTooSlow
	}
}

// add queues a line. The caller holds mu.
func (o *outbox) add(line []byte) error {
	if o.ended {
		if o.drop != nil {
			return o.drop
		}
		return errOver
	}
	line = append(line, '\n')
	o.lines = append(o.lines, line)
	o.size += len(line)
	signal(o.wake)
	return nil
}

// finish lets run end once everything queued is written.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.freed()
	signal(o.wake)
}

// dropFor gives the client up: what is queued is thrown away, and if it still
// reads it is told the reason.
func (o *outbox) dropFor(reason error) { o.giveUp(reason, false) }

// endFor ends the connection for a reason that is not the client's: it still
// gets what is queued, and then the reason.
func (o *outbox) endFor(reason error) { o.giveUp(reason, true) }

func (o *outbox) giveUp(reason error, keepAll bool) {
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	o.drop, o.ended = reason, true
	keep := 0
	switch {
	case keepAll:
		keep = len(o.lines)
	case o.begun:
		keep = 1
	}
	for _, l := range o.lines[keep:] {
		o.size -= len(l)
	}
	last := append(errorLine(nil, wire(reason)), '\n')
	o.lines = append(o.lines[:keep:keep], last)
	o.size += len(last)
	o.freed()
	signal(o.wake)
	o.mu.Unlock()
	if o.onDrop != nil {
		o.onDrop()
	}
}

// dropped is why the client was dropped, nil if it was not.
func (o *outbox) dropped() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drop
}

// unread words the error of a client that has left the last of what it was sent
// unread for as long as it was given.
func (o *outbox) unread(err error) error {
	if o.dropped() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(CodeClientTooSlow, "the client did not read the rest of what it was sent, within %s of its end of the input", o.lim.flush)
	}
	return err
}

// freed wakes all who wait for room. The caller holds mu.
func (o *outbox) freed() {
	if o.space != nil {
		close(o.space)
		o.space = nil
	}
}

// run writes what is queued until finish, a drop or a failed write, which it returns.
func (o *outbox) run(w io.Writer) error {
	var buf []byte
	for {
		o.mu.Lock()
		chunk := o.chunk(buf[:0])
		ended := o.ended
		o.mu.Unlock()
		if len(chunk) == 0 {
			if ended {
				return nil
			}
			<-o.wake
			continue
		}
		_, err := w.Write(chunk)
		buf = chunk
		o.mu.Lock()
		o.size -= len(chunk)
		if err != nil {
			o.ended, o.lines, o.size = true, nil, 0
		}
		o.freed()
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// chunk takes what one write is to hold: little enough that a client which
// reads slowly shows that it does. The caller holds mu.
func (o *outbox) chunk(buf []byte) []byte {
	const most = 32 << 10
	for len(o.lines) > 0 && len(buf) < most {
		line := o.lines[0]
		n := min(len(line), most-len(buf))
		buf = append(buf, line[:n]...)
		if o.begun = n < len(line); o.begun {
			o.lines[0] = line[n:]
		} else {
			o.lines[0] = nil
			o.lines = o.lines[1:]
		}
	}
	return buf
}

// notification is a line that answers nothing.
func notification(method string, params any) ([]byte, error) {
	return session.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{jrpc2.Version, method, params})
}
