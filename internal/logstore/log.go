package logstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"deepseek/internal/session"
)

// indexEvery is how many events lie between two whose offset is remembered.
const indexEvery = 256

// Log is an owned session file. Its methods are safe for concurrent use.
//
// One goroutine, write, owns the file: it alone writes, syncs, cuts and
// repairs, and it ends at Close or at the first failure. The mutex guards what
// the others share with it: the events on their way, what is asked and what is
// done.
type Log struct {
	fs         fileSystem
	path       string
	header     session.Header
	headerLine []byte
	redact     func([]byte) []byte
	openEnd    int64 // bytes of the whole lines at open
	torn       int   // bytes behind them at open

	file    file  // reading is anybody's until Close, the rest is write's, then Close's
	written int64 // length of what was written; write's

	mu         sync.Mutex
	next       int64  // seq of the next event
	end        int64  // length of the file once pending is written
	pending    []byte // encoded, not yet taken by write
	index      []int64
	durable    int64 // seq below which everything is on disk
	durableEnd int64 // where that ends in the file
	syncTo     int64 // seq below which somebody waits for everything
	tear       int64 // bytes of a torn tail still in the file
	repair     bool  // the tail is to be set aside now
	verified   bool  // every line was checked whole
	err        error // the failure that ended write
	closing    bool
	changed    chan struct{} // closed and replaced when durable, tear, err or closing change

	ownerMu   sync.Mutex // for the owner file; never held with mu
	announced bool
	left      bool

	wake      chan struct{} // one slot: something for write to do
	done      chan struct{} // closed by write when it ends
	closeOnce sync.Once
	closeErr  error
}

func newLog(s *Store, path string, f file) *Log {
	return &Log{
		fs: s.fs, path: path, redact: s.redact, file: f,
		changed: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Header is line 1.
func (l *Log) Header() session.Header { return l.header }

// HeaderLine is line 1 as it stands in the file, without its newline. It must not be changed.
func (l *Log) HeaderLine() []byte { return l.headerLine }

// Path is where the file lies: absolute, without symbolic links.
func (l *Log) Path() string { return l.path }

// ID is the session's id.
func (l *Log) ID() string { return l.header.ID }

// TornBytes is the length of the torn tail that was found at opening.
func (l *Log) TornBytes() int { return l.torn }

// Next is the seq that the next event gets.
func (l *Log) Next() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Durable is the seq below which every event is on disk.
func (l *Log) Durable() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Append adds events if the next seq is expect, else returns ErrConflict. It
// returns the seq after them, and makes the caller's slice what was logged: seq
// assigned, data redacted. It hands the bytes over and never waits for the
// disk; Sync does, and who appends much without it holds it all in memory.
//
// A batch is taken or refused as a whole, but a crash before Sync may keep only
// a first part of it. After a failure or Close it returns that error.
func (l *Log) Append(expect int64, events []session.Event) (next int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.next, l.err
	case l.closing:
		return l.next, ErrClosed
	case !l.verified:
		return l.next, ErrUnverified
	case expect != l.next:
		return l.next, fmt.Errorf("%w: event %d is next, not %d", ErrConflict, l.next, expect)
	case len(events) == 0:
		return l.next, nil
	}
	before := len(l.pending)
	buf, offsets, err := encode(l.pending, l.next, events, l.redact)
	if err != nil {
		return l.next, err
	}
	for i, at := range offsets {
		events[i].Seq = l.next + int64(i)
		l.note(events[i].Seq, l.end+int64(at-before))
	}
	l.pending = buf
	l.end += int64(len(buf) - before)
	l.next += int64(len(events))
	l.poke()
	return l.next, nil
}

// note remembers where an event begins, for one in indexEvery.
func (l *Log) note(seq, at int64) {
	if seq%indexEvery == 0 {
		l.index = append(l.index, at)
	}
}

// encode appends events as lines to dst and tells where in it each begins. A
// line that a reader would refuse is an error.
func encode(dst []byte, seq int64, events []session.Event, redact func([]byte) []byte) ([]byte, []int, error) {
	offsets := make([]int, len(events))
	for i, e := range events {
		if redact != nil {
			e.Data = redact(e.Data)
			events[i].Data = e.Data
		}
		if !plain(e.Type) || len(e.Data) == 0 || e.Data[0] != '{' || bytes.IndexByte(e.Data, '\n') >= 0 || !valid(e.Data) {
			return nil, nil, fmt.Errorf("cannot log event %q: its data must be one JSON object in one line", e.Type)
		}
		if !e.Ignorable && !session.KnownType(e.Type) {
			return nil, nil, fmt.Errorf("cannot log event %q: the type is unknown and the event not ignorable", e.Type)
		}
		e.Seq = seq + int64(i)
		offsets[i] = len(dst)
		dst = e.AppendLine(dst)
		if n := len(dst) - offsets[i]; n > MaxLine {
			return nil, nil, fmt.Errorf("cannot log event %q: a line may have %d bytes, it has %d", e.Type, MaxLine, n)
		}
	}
	return dst, offsets, nil
}

// Sync returns nil once everything appended before the call is on disk.
// Concurrent calls share one fsync. The end of ctx ends the waiting and undoes nothing.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	target, failed := l.next, l.err
	l.syncTo = max(l.syncTo, target)
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	return l.await(ctx, func() bool { return l.durable >= target })
}

// Repair sets a torn tail aside now, without an Append, and returns when that
// is on disk. Without a torn tail it does nothing.
func (l *Log) Repair(ctx context.Context) error {
	l.mu.Lock()
	verified, failed := l.verified, l.err
	l.repair = l.repair || verified
	l.mu.Unlock()
	switch {
	case failed != nil:
		return failed
	case !verified:
		return ErrUnverified
	}
	return l.await(ctx, func() bool { return l.tear == 0 })
}

// await lets write work until reached, which is asked under the mutex.
func (l *Log) await(ctx context.Context, reached func() bool) error {
	for {
		l.mu.Lock()
		ok, err, changed := reached(), l.err, l.changed
		l.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		}
		l.poke()
		select {
		case <-changed:
		case <-l.done:
			// write has ended, and what it did last may not have been seen above.
			l.mu.Lock()
			ok, err := reached(), l.err
			l.mu.Unlock()
			switch {
			case ok:
				return nil
			case err != nil:
				return err
			}
			return ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// poke wakes write.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Announce writes the owner file, so that others find who holds the lock.
func (l *Log) Announce(o Owner) error {
	data, err := session.Marshal(o)
	if err != nil {
		return err
	}
	l.ownerMu.Lock()
	defer l.ownerMu.Unlock()
	if l.left {
		return ErrClosed
	}
	if err := l.fs.Replace(OwnerPath(l.path), append(data, '\n')); err != nil {
		return &WriteError{Path: OwnerPath(l.path), Err: err}
	}
	l.announced = true
	return nil
}

// Close refuses further events, syncs what was accepted, removes the owner
// file, and gives up the lock, in this order. Cursors still deliver what is on
// disk. Further calls wait for the first and return what it did: the failure
// of the log, if it had one.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		l.mu.Lock()
		l.closing = true
		l.broadcast()
		l.mu.Unlock()
		l.poke()
		<-l.done
		l.closeErr = l.err // write has ended, nobody sets it any more
		l.closeErr = errors.Join(l.closeErr, l.leave(), l.file.Close())
	})
	return l.closeErr
}

// leave removes the owner file, or what an owner that was killed has left of
// its own, and lets no other be written. What others left and cannot be removed
// is in nobody's way.
func (l *Log) leave() error {
	l.ownerMu.Lock()
	defer l.ownerMu.Unlock()
	l.left = true
	for _, name := range []string{OwnerPath(l.path), replacingPath(OwnerPath(l.path))} {
		if err := l.fs.Remove(name); err != nil && l.announced && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the owner file: %w", err)
		}
	}
	return nil
}

// broadcast tells everybody who waits to look again. The mutex is held.
func (l *Log) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}
