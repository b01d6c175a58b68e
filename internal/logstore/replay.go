package logstore

import (
	"context"
	"errors"
	"io"
	"os"

	"deepseek/internal/session"
)

// Replay hands every event that the file held at opening to fn, in order. Each
// line is checked whole: one JSON value, the next seq, a known type. Only when
// Replay has come to its end may the log be appended to. Events stay valid
// after fn. An error of fn, or the end of ctx, ends the replay with it; one that
// is session.ErrDamaged gets the line's place.
func (l *Log) Replay(ctx context.Context, fn func(session.Event) error) error {
	r := io.NewSectionReader(l.file, 0, l.openEnd)
	_, err := readFrom(ctx, r, l.path, nil, func(line Line) error {
		e, err := line.Event()
		if err != nil {
			return err
		}
		return line.Damaged(fn(e))
	})
	if errors.Is(err, os.ErrClosed) {
		return ErrClosed
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.verified = true
	return nil
}
