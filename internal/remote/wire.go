package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/creachadair/jrpc2"

	"deepseek/internal/session"
)

// answer is what came back for one request.
type answer struct {
	result json.RawMessage
	err    *jrpc2.Error
}

func request(id int64, method string, params json.RawMessage) []byte {
	line := fmt.Appendf(nil, `{"jsonrpc":"%s","id":%d,"method":"%s"`, jrpc2.Version, id, method)
	if params != nil {
		line = append(append(line, `,"params":`...), params...)
	}
	return append(line, '}', '\n')
}

// call sends a request and decodes the result of its answer.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	raw, err := session.Marshal(params)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotDelivered, method, err)
	}
	if len(raw) > socketLimits.line-1024 {
		return fmt.Errorf("%w: it has %d bytes, at most %d are possible", ErrNotDelivered, len(raw), socketLimits.line-1024)
	}
	reply := make(chan answer, 1)
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.pending[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.write(ctx, request(id, method, raw)); err != nil {
		return err
	}
	select {
	case a := <-reply:
		return a.decode(method, result)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w: %w", method, ErrLost, context.Cause(ctx))
	case <-c.done:
	}
	select {
	case a := <-reply:
		return a.decode(method, result)
	default:
		return c.lost(method, ErrLost)
	}
}

func (a answer) decode(method string, result any) error {
	if a.err != nil {
		return fromWire(a.err)
	}
	if err := json.Unmarshal(a.result, result); err != nil {
		return fmt.Errorf("%s: the answer is not understood: %w", method, session.PlainJSON(err))
	}
	return nil
}

// lost is the error of a call on a connection that has ended: what the owner
// said when it did not let us in, else kind.
func (c *Client) lost(method string, kind error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.reason; r != nil {
		switch r.Code {
		case CodeCallerIsTool, CodeOtherUser, CodeTooManyClients, CodeOwnerLeaving:
			return r
		}
		return fmt.Errorf("%s: %w: %w", method, kind, r)
	}
	return fmt.Errorf("%s: %w: %w", method, kind, c.over)
}

// write sends one line whole. A line of which a part was written ends the connection.
func (c *Client) write(ctx context.Context, line []byte) error {
	select {
	case <-c.writing:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotDelivered, context.Cause(ctx))
	case <-c.done:
		return c.lost("write", ErrNotDelivered)
	}
	defer func() { c.writing <- struct{}{} }()
	n, err := c.writeUntil(ctx, line)
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotDelivered, context.Cause(ctx))
	}
	kind := ErrNotDelivered // what is no whole line is not a request
	if n >= len(line)-1 {
		kind = ErrLost
	}
	if ctx.Err() == nil {
		// The other side has closed. What it said before that says why.
		select {
		case <-c.done:
			return c.lost("write", kind)
		case <-ctx.Done():
		}
	}
	// The error of closing says less than the one at hand.
	_ = c.conn.Close()
	return fmt.Errorf("%w: %w", kind, err)
}

// writeUntil writes until ctx ends. The caller holds the write lock.
func (c *Client) writeUntil(ctx context.Context, line []byte) (int, error) {
	if err := c.conn.SetWriteDeadline(time.Time{}); err != nil {
		return 0, err
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		// It fails only where the connection has ended, and then so has the write.
		_ = c.conn.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.conn.Write(line)
	if !stop() {
		<-cut // the deadline must not hit the next write
	}
	return n, err
}

// message is anything that comes in.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *jrpc2.Error    `json:"error"`
}

// read hands out what comes in until the connection ends.
func (c *Client) read() {
	lines := newLineReader(c.conn, limits{line: clientLine}, true)
	buf := bufio.NewReaderSize(c.conn, 64<<10)
	var err error
	for err == nil {
		var line inLine
		if line, err = lines.next(buf); err == nil {
			err = c.handle(line)
		}
	}
	c.mu.Lock()
	c.over = err
	for _, d := range c.desks {
		d.end(nil)
	}
	c.mu.Unlock()
	close(c.done)
	c.cancel()
	// Nobody reads any more: let nobody write. Close reports what closing yields.
	_ = c.conn.Close()
}

func (c *Client) handle(line inLine) error {
	if line.tooLong {
		return fmt.Errorf("a line from the owner has more than %d bytes", clientLine)
	}
	if c.redact != nil {
		line.text = c.redact(line.text)
	}
	var m message
	if err := json.Unmarshal(line.text, &m); err != nil {
		return fmt.Errorf("a line from the owner is not understood: %w", session.PlainJSON(err))
	}
	if m.Method != "" {
		return c.notified(m.Method, m.Params)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var id int64
	if err := json.Unmarshal(m.ID, &id); err != nil || id == 0 {
		if m.Error != nil {
			c.reason = fromWire(m.Error)
		}
		return nil
	}
	if reply, ok := c.pending[id]; ok {
		reply <- answer{m.Result, m.Error}
		delete(c.pending, id)
	}
	return nil
}
