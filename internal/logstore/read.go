package logstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"deepseek/internal/session"
)

// End is where reading a file ended.
type End struct {
	Header    session.Header
	Next      int64 // the seq after the last event
	Size      int64 // bytes of the whole lines, header included
	Torn      int64 // bytes behind them: a line half written, or cut by a crash
	UpdatedAt int64 // ms since the epoch: time of the last event, else of the creation
}

// ReadHeader reads line 1 alone.
func ReadHeader(path string) (session.Header, error) {
	f, err := openForReading(osFS{}, path)
	if err != nil {
		return session.Header{}, err
	}
	h, _, err := newScanner(f, path, headerSize).header()
	return h, errors.Join(err, f.Close())
}

// Read hands every whole event of a file to fn, in order, without a lock and
// without changing anything. A live owner may be appending meanwhile; what it
// has written when reading gets there is included. A last line that is cut or
// does not parse is left out, as the repair of an owner would.
//
// Lines are told by their beginning; what fn does not decode is not vouched
// for, save a last line that nothing follows. Anything wrong before the end is a *DamageError, an
// event of an unknown type an *UnknownTypeError, a higher version
// session.ErrTooNew. An error of fn, or the end of ctx, ends reading with it.
// Line.Raw is valid during fn only.
func Read(ctx context.Context, path string, fn func(Line) error) (End, error) {
	return Scan(ctx, path, nil, fn)
}

// Scan is Read that hands the header to begin, which may be nil, before the
// events to fn. An error of begin ends reading with it.
func Scan(ctx context.Context, path string, begin func(session.Header) error, fn func(Line) error) (End, error) {
	f, err := openForReading(osFS{}, path)
	if err != nil {
		return End{}, err
	}
	end, err := readFrom(ctx, f, path, begin, fn)
	return end, errors.Join(err, f.Close())
}

// ReadEvents is Read with every line checked whole and decoded. Events stay
// valid after fn.
func ReadEvents(ctx context.Context, path string, fn func(session.Event) error) (End, error) {
	return Read(ctx, path, func(l Line) error {
		e, err := l.Event()
		if err != nil {
			return err
		}
		return l.Damaged(fn(e))
	})
}

func openForReading(fsys fileSystem, path string) (file, error) {
	f, err := fsys.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, path)
	}
	return f, err
}

const ctxEvery = 1 << 10 // lines between two looks at a context

// buffers are lent to readFrom: a listing reads a thousand files in a row.
var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

func readFrom(ctx context.Context, r io.ReaderAt, path string, begin func(session.Header) error, fn func(Line) error) (End, error) {
	buf := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buf) // a scanner that needs more makes its own
	s := newScanner(r, path, 0)
	s.buf = buf[:]
	h, _, err := s.header()
	if err == nil && begin != nil {
		err = begin(h)
	}
	if err != nil {
		return End{}, err
	}
	for {
		if s.seq%ctxEvery == 0 && ctx.Err() != nil {
			return End{}, context.Cause(ctx)
		}
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			return End{Header: h, Next: s.seq, Size: s.offset(), Torn: s.torn, UpdatedAt: max(h.CreatedAt, s.time)}, nil
		}
		if err != nil {
			return End{}, firstDamage(r, path, err)
		}
		if err := fn(l); err != nil {
			return End{}, err
		}
	}
}

// readSmall reads a file of at most limit bytes.
func readSmall(fsys fileSystem, path string, limit int64) ([]byte, error) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return data, nil
}
