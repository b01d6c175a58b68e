package deepseek

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	stderrKept     = 8 << 10   // bytes
	longestLine    = 256 << 20 // bytes; a page of the log with an event that fills a line
	longestRequest = 64 << 20  // bytes that the server takes in a line
	readerTime     = 2 * time.Second
	endTime        = time.Second // for a server whose output is over to end by itself
)

// connection is the server's process and the way to it. Its reading goroutine
// alone calls notified and, at the end, ended, in the order of the server's
// lines; its writing goroutine keeps callers from waiting for a busy server.
// Both end with the process. mu guards the fields below it.
type connection struct {
	cmd      *exec.Cmd
	notified func(method string, params json.RawMessage) error
	ended    func(why error)
	stderr   *tail
	wake     chan struct{} // holds a token after a change that the writer may wait for
	gone     chan struct{} // closed when all has ended

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*pending
	over    error
	reason  string // why the connection is over, where the server has said so or it shows
	out     [][]byte
	closing bool // end the input behind what is in out
	closed  bool // by the client: there are no more requests
}

// pending is a request in hand. then is called with the result before whatever
// came behind it, unless it is nil; done gets nil, or why there is none, once.
type pending struct {
	method string
	then   func(result json.RawMessage) error
	done   chan error
}

func startServer(o Options, notified func(string, json.RawMessage) error, ended func(error)) (*connection, error) {
	c := &connection{
		notified: notified, ended: ended, stderr: &tail{to: o.Stderr}, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		pending: map[int64]*pending{},
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	// It ends by stop, not by a context.
	c.cmd = exec.CommandContext(context.Background(), o.Command[0], o.Command[1:]...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, c.stderr
	c.cmd.WaitDelay = readerTime // a grandchild may hold its stderr
	if len(o.Env) > 0 {
		c.cmd.Env = append(os.Environ(), o.Env...)
	}
	err = c.cmd.Start()
	closed := errors.Join(inR.Close(), outW.Close())
	if err = errors.Join(err, closed); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server %s: %w", o.Command[0], err), inW.Close(), outR.Close())
	}
	go c.run(inW, outR)
	return c, nil
}

// run is the connection's life.
func (c *connection) run(in, out *os.File) {
	defer close(c.gone)
	var work sync.WaitGroup
	work.Go(func() { c.write(in) })
	exited := make(chan struct{})
	var broken error
	work.Go(func() {
		broken = c.read(out)
		if ends(exited, endTime) || !c.signal(exited) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reason == "" {
			c.reason = "the server closed its output"
		}
	})
	// That its stderr is held open by somebody, or that it failed, is no error here.
	_ = c.cmd.Wait()
	close(exited)
	// All of its output is in the pipe by now, which a grandchild may hold open.
	// The pipes are polled, so a deadline ends a read and a write.
	_ = out.SetReadDeadline(time.Now().Add(readerTime))
	_ = in.SetWriteDeadline(time.Now())
	c.closeInput()
	work.Wait()
	_ = out.Close() // read only

	c.mu.Lock()
	why := &ServerError{Reason: "the server ended: " + c.cmd.ProcessState.String(), Stderr: c.stderr.text()}
	switch {
	case broken != nil:
		why.Reason = broken.Error()
	case c.reason != "":
		why.Reason = c.reason
	}
	c.over = why
	left := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, p := range left {
		p.done <- why
	}
	c.ended(why)
}

// send sends a request. The answer comes to the channel, once.
func (c *connection) send(method string, params any, then func(json.RawMessage) error) <-chan error {
	p := &pending{method: method, then: then, done: make(chan error, 1)}
	raw, err := encode(params)
	if err != nil {
		p.done <- fmt.Errorf("%s: %w", method, err)
		return p.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil || c.closed {
		err := c.over
		if err == nil {
			err = ErrClosed
		}
		p.done <- err
		return p.done
	}
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.lastID+1, method, raw)
	if n := len(line) - 1; n > longestRequest {
		p.done <- &RefusedError{
			Code:    names[codeInvalidRequest],
			Message: fmt.Sprintf("%s would be a line of %d bytes; the server takes at most %d", method, n, longestRequest),
		}
		return p.done
	}
	c.lastID++
	c.pending[c.lastID] = p
	c.out = append(c.out, line)
	c.poke()
	return p.done
}

// call sends a request and waits for its result.
func call[T any](ctx context.Context, c *connection, method string, params any) (result T, err error) {
	var got T // the reader's until the request is done
	select {
	case err := <-c.send(method, params, into(&got)):
		if err != nil {
			return result, err
		}
		return got, nil
	case <-ctx.Done():
		return result, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// into decodes a result.
func into(v any) func(json.RawMessage) error {
	return func(result json.RawMessage) error { return json.Unmarshal(result, v) }
}

// poke wakes the writer.
func (c *connection) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// closeInput lets the server see the end of its input, behind what was sent.
func (c *connection) closeInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.poke()
}

func (c *connection) write(in *os.File) {
	defer func() { _ = in.Close() }() // what cannot be delivered, the end of the server tells
	for {
		c.mu.Lock()
		lines := c.out
		c.out = nil
		closing := c.closing
		c.mu.Unlock()
		for _, l := range lines {
			if _, err := in.Write(l); err != nil {
				return // the server has ended, and reading finds out
			}
		}
		switch {
		case len(lines) > 0:
		case closing:
			return
		default:
			<-c.wake
		}
	}
}

// read hands out what the server says, to the end or to its last line. An error
// means that it is not understood.
func (c *connection) read(out io.Reader) error {
	in := bufio.NewReaderSize(out, 64<<10)
	var line []byte
	for {
		part, end := in.ReadSlice('\n')
		line = append(line, part...)
		var err error
		switch {
		case end == nil:
			err = c.handle(line)
			line = line[:0]
		case !errors.Is(end, bufio.ErrBufferFull):
			return nil // the reason has the process, which has cut off the line
		case len(line) > longestLine:
			err = fmt.Errorf("a line has more than %d bytes", longestLine)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			_ = c.cmd.Process.Kill() // it may have ended already
			return fmt.Errorf("the server's output is not understood: %w", err)
		}
	}
}

// handle takes a line. io.EOF: it is the last.
func (c *connection) handle(line []byte) error {
	if err := check("the line", bytes.TrimSpace(line), aLine); err != nil {
		return err
	}
	var m incoming
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	switch {
	case m.Method != "":
		if m.Params == nil {
			m.Params = json.RawMessage("{}")
		}
		shape, known := notes[m.Method]
		if !known {
			shape = aNote
		}
		if err := check(m.Method, m.Params, shape); err != nil {
			return err
		}
		return c.notified(m.Method, m.Params)
	case m.ID != nil:
		if err := check("id of the line", *m.ID, aWhole); err != nil {
			return err
		}
		return c.answered(*m.ID, m.Result, m.Error)
	case m.Error != nil:
		return c.unnamed(m.Error)
	}
	return errors.New("the line is no answer and no notification")
}

// answered settles a request. One whose answer is not understood stays pending, and
// fails with the connection.
func (c *connection) answered(rawID, result json.RawMessage, refused *refusal) error {
	var id int64
	err := json.Unmarshal(rawID, &id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	p := c.pending[id]
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	if refused != nil {
		err = refused.err()
	} else {
		if err := check("the answer to "+p.method, result, results[p.method]); err != nil {
			return err
		}
		if p.then != nil {
			if err := p.then(result); err != nil {
				return err
			}
		}
	}
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
	p.done <- err
	return nil
}

// stop ends the server: by shutdown, the end of its input, and, where it takes
// longer than patience to end, by signals. It returns when nothing of the
// connection is left running.
func (c *connection) stop(patience time.Duration) {
	c.send("shutdown", struct{}{}, nil)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closeInput()
	if !ends(c.gone, patience) {
		c.signal(c.gone)
	}
	<-c.gone
}

// signal ends the server by signals; gone is closed behind its end. False: it has ended already.
func (c *connection) signal(gone <-chan struct{}) bool {
	if c.cmd.Process.Signal(syscall.SIGTERM) != nil {
		return false
	}
	if !ends(gone, 6*time.Second) {
		_ = c.cmd.Process.Kill() // it may have ended just now
	}
	return true
}

// ends tells whether gone is closed within patience.
func ends(gone <-chan struct{}, patience time.Duration) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-gone:
		return true
	case <-t.C:
		return false
	}
}

// tail keeps the end of what is written to it, and hands it on.
type tail struct {
	to io.Writer // may be nil

	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - stderrKept; n > 0 {
		t.kept = bytes.Clone(t.kept[n:])
	}
	t.mu.Unlock()
	if t.to != nil {
		return t.to.Write(p)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "�"))
}
