package logstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"deepseek/internal/session"
)

const batchSize = 1 << 20 // of Cursor.Next, in bytes

// Cursor reads a live log from a place on: what is on disk, from the file, and
// then what gets there. It keeps its own place, so one that reads slowly costs
// its owner nothing. It is one goroutine's, which closes it.
type Cursor struct {
	log  *Log
	file file
	seq  int64 // next to be given out
	at   int64 // in the file, of seq or of an event before it
	buf  []byte
	out  []Line
}

// Cursor opens a cursor whose first event is fromSeq, which may be still to come.
func (l *Log) Cursor(fromSeq int64) (*Cursor, error) {
	if fromSeq < 0 {
		return nil, fmt.Errorf("fromSeq must be 0 or more, it is %d", fromSeq)
	}
	c := &Cursor{log: l, seq: fromSeq}
	l.mu.Lock()
	closing := l.closing
	if fromSeq >= l.durable {
		c.at = l.durableEnd
	} else {
		c.at = l.index[fromSeq/indexEvery]
	}
	l.mu.Unlock()
	if closing {
		return nil, ErrClosed
	}
	f, err := l.fs.OpenRead(l.path)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return nil, err
	}
	if gone || !f.SameAs(l.file) {
		err := ErrClosed // meanwhile
		if !l.ended() {
			err = fmt.Errorf("%s is no longer the file of the session", l.path)
		}
		if gone {
			return nil, err
		}
		return nil, errors.Join(err, f.Close())
	}
	c.file = f
	return c, nil
}

// Seq is the seq of the next event that the cursor gives out.
func (c *Cursor) Seq() int64 { return c.seq }

// Next waits until events at or behind the cursor's place are on disk and
// returns some, in order and without gaps: about a megabyte, and at least one.
// io.EOF once the log is closed and everything was given out; the log's
// *WriteError if it failed. The end of ctx ends the waiting only. The lines are
// valid until the next call.
func (c *Cursor) Next(ctx context.Context) ([]Line, error) {
	for {
		lines, changed, err := c.read(batchSize)
		if err != nil || len(lines) > 0 {
			return lines, err
		}
		select {
		case <-changed:
		case <-c.log.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Read is Next without waiting: what there is now, at most limit bytes or one
// event that is longer, or nothing.
func (c *Cursor) Read(limit int) ([]Line, error) {
	lines, _, err := c.read(max(limit, 1))
	return lines, err
}

// Close ends the cursor. It does not interrupt a Next; the context does.
func (c *Cursor) Close() error { return c.file.Close() }

// read returns what is on disk, or what to wait for.
func (c *Cursor) read(limit int) ([]Line, <-chan struct{}, error) {
	l := c.log
	ended := l.ended() // asked first: what write did before it ended is seen below
	l.mu.Lock()
	durable, end, failed, changed := l.durable, l.durableEnd, l.err, l.changed
	l.mu.Unlock()
	for c.seq < durable {
		lines, err := c.batch(limit, end)
		if err != nil || len(lines) > 0 {
			return lines, nil, err
		}
	}
	switch {
	case failed != nil:
		return nil, nil, failed
	case ended:
		return nil, nil, io.EOF
	}
	return nil, changed, nil
}

// batch reads up to limit bytes before end, or the one line that is longer, and
// returns those events of it that are not before the cursor's place.
func (c *Cursor) batch(limit int, end int64) ([]Line, error) {
	var whole []byte
	for size := limit; ; size *= 2 {
		want := min(int64(size), end-c.at)
		if int64(cap(c.buf)) < want || cap(c.buf) > 4*batchSize && want <= batchSize {
			c.buf = make([]byte, want)
		}
		n, err := c.file.ReadAt(c.buf[:want], c.at)
		if int64(n) < want {
			return nil, fmt.Errorf("read %s at byte %d: %w", c.log.path, c.at+int64(n), err)
		}
		if whole = c.buf[:bytes.LastIndexByte(c.buf[:n], '\n')+1]; len(whole) > 0 {
			if size > limit {
				whole = whole[:bytes.IndexByte(whole, '\n')+1]
			}
			break
		}
		if want == end-c.at {
			return nil, &DamageError{Path: c.log.path, Offset: c.at, Reason: "the line was changed by somebody else"}
		}
	}
	c.out = c.out[:0]
	for len(whole) > 0 {
		n := bytes.IndexByte(whole, '\n')
		l, err := c.line(whole[:n:n])
		if err != nil {
			return nil, err
		}
		if l.Seq >= c.seq {
			c.out = append(c.out, l)
			c.seq = l.Seq + 1
		}
		c.at += int64(n) + 1
		whole = whole[n+1:]
	}
	return c.out, nil
}

func (c *Cursor) line(raw []byte) (Line, error) {
	l := Line{Raw: raw, Offset: c.at, path: c.log.path}
	if p, ok := parsePrefix(raw); ok {
		l.Seq, l.Type, l.Time = p.seq, string(p.typ), p.time
		return l, nil
	}
	e, err := session.ParseEvent(raw)
	if err != nil {
		return l, &DamageError{Path: l.path, Offset: l.Offset, Reason: err.Error()}
	}
	l.Seq, l.Type, l.Time = e.Seq, e.Type, e.Time
	return l, nil
}

// ended tells whether nothing more will be written, after Close or a failure.
func (l *Log) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
