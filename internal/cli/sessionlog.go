package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// sessionLog is a session's log as the engine sees it. That of a new session
// has no file: what is appended is kept until the first Sync, which publishes
// the header and the first batch together, so that a run that is refused
// before its first receipt leaves nothing.
//
// mu guards the fields below it. It is held while the file is created: until
// then nobody but the one who begins the run knows of the session.
type sessionLog struct {
	store     *logstore.Store
	header    session.Header
	published func(*logstore.Log) error // called once, when the file has come to be
	ended     func()                    // called when what can end a question is on disk; may be nil

	ends atomic.Bool // such has been appended since

	mu    sync.Mutex
	log   *logstore.Log // nil before
	first []session.Event
}

func (l *sessionLog) Append(expect int64, events []session.Event) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil {
		next, err := l.log.Append(expect, events)
		if slices.ContainsFunc(events, canEnd) {
			l.ends.Store(true)
		}
		return next, err
	}
	if int64(len(l.first)) != expect {
		return 0, fmt.Errorf("%w: event %d is next, not %d", logstore.ErrConflict, len(l.first), expect)
	}
	l.first = append(l.first, events...)
	return int64(len(l.first)), nil
}

// canEnd tells whether the event may be the end of a question: the result of the
// call, or a late answer.
func canEnd(e session.Event) bool {
	switch e.Type {
	case session.TypeToolResult, session.TypePTCDispatch, session.TypeUserMessage:
		return true
	}
	return false
}

func (l *sessionLog) Sync(ctx context.Context) error {
	log, err := l.create()
	if err != nil || log == nil {
		return err
	}
	if err := log.Sync(ctx); err != nil {
		return err
	}
	if l.ended != nil && l.ends.Swap(false) {
		l.ended()
	}
	return nil
}

func (l *sessionLog) create() (*logstore.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil || len(l.first) == 0 {
		return l.log, nil
	}
	log, err := l.store.Create(l.header, l.first)
	if err != nil {
		return nil, err
	}
	l.log, l.first = log, nil
	return log, l.published(log)
}

// file is the log on disk, nil before it is created.
func (l *sessionLog) file() *logstore.Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log
}

func (l *sessionLog) Follow(fromSeq int64) (engine.Cursor, error) {
	log := l.file()
	if log == nil {
		return nil, logstore.ErrNotFound
	}
	c, err := log.Cursor(fromSeq)
	if err != nil {
		return nil, err
	}
	return &cursor{c}, nil
}

// Close closes the file, if there is one.
func (l *sessionLog) Close() error {
	if log := l.file(); log != nil {
		return log.Close()
	}
	return nil
}

// Create makes a spill file. Tools run after the file of the session was created.
func (l *sessionLog) Create(hint string) (tool.SpillFile, error) {
	log := l.file()
	if log == nil {
		return nil, logstore.ErrNotFound
	}
	f, err := log.Spill().Create(hint)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// cursor hands out the store's lines as the engine's.
type cursor struct{ *logstore.Cursor }

func (c *cursor) Next(ctx context.Context) ([]engine.Line, error) {
	lines, err := c.Cursor.Next(ctx)
	out := make([]engine.Line, len(lines))
	for i, l := range lines {
		out[i] = engine.Line{Seq: l.Seq, Type: l.Type, Raw: l.Raw}
	}
	return out, err
}
