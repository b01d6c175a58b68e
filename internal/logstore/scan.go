package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"deepseek/internal/session"
)

// MaxLine is the longest line that is written or read, newline included, in bytes.
const MaxLine = 128 << 20

// Sizes of reading at once, in bytes: a file from end to end, and a header.
const (
	chunk      = 256 << 10
	headerSize = 2 << 10
)

// scanner reads a session file from its start to where its whole lines end. It
// checks the header, the order of seq and the types by the lines' beginnings,
// and the last line whole. It is one goroutine's.
//
// The file may be growing, and its owner may cut and rewrite what it never
// acknowledged, so a line is only called bad if a second look says the same.
type scanner struct {
	r    io.ReaderAt
	path string

	buf        []byte
	start, end int   // of what is read and not yet consumed
	base       int64 // offset of buf[0] in the file
	eof        bool  // nothing follows buf[:end]

	line  int   // number of the last line given out
	seq   int64 // expected next
	time  int64 // of the last event given out
	torn  int64 // bytes behind the last whole line; known at io.EOF
	types map[string]string
	limit int // of a line
}

func newScanner(r io.ReaderAt, path string, size int) *scanner {
	return &scanner{r: r, path: path, buf: make([]byte, size), types: map[string]string{}, limit: MaxLine}
}

// offset is where the next line begins.
func (s *scanner) offset() int64 { return s.base + int64(s.start) }

// header reads line 1. raw is valid until the next call.
func (s *scanner) header() (h session.Header, raw []byte, err error) {
	raw, _, err = s.raw()
	if errors.Is(err, io.EOF) {
		return h, nil, s.damage(1, 0, "no whole header line")
	}
	if err != nil {
		return h, nil, err
	}
	s.line = 1
	h, err = session.ParseHeader(raw)
	switch {
	case errors.Is(err, session.ErrTooNew):
		return h, nil, fmt.Errorf("%s: %w", s.path, err)
	case err != nil:
		return h, nil, s.damage(1, 0, strings.TrimPrefix(err.Error(), session.ErrDamaged.Error()+": "))
	}
	return h, raw, nil
}

// next reads one event. Raw is valid until the next call. io.EOF comes after
// the last whole line.
func (s *scanner) next() (Line, error) {
	at := s.offset()
	raw, last, err := s.raw()
	if err != nil {
		return Line{}, err
	}
	l, err := s.check(raw, at, last)
	if err == nil {
		return s.taken(l), nil
	}
	return s.again(bytes.Clone(raw), at, err)
}

func (s *scanner) taken(l Line) Line {
	s.line++
	s.seq++
	s.time = l.Time
	return l
}

// again takes a second look at a line that was found bad.
func (s *scanner) again(before []byte, at int64, bad error) (Line, error) {
	for {
		s.start, s.end, s.base, s.eof = 0, 0, at, false
		raw, last, err := s.raw()
		if err != nil {
			return Line{}, err
		}
		l, err := s.check(raw, at, last)
		if err == nil {
			return s.taken(l), nil
		}
		if !bytes.Equal(raw, before) {
			before, bad = bytes.Clone(raw), err
			continue
		}
		if last && errors.Is(err, errUnparsable) {
			s.start = int(at - s.base)
			s.torn = int64(s.end - s.start)
			return Line{}, io.EOF
		}
		var too *UnknownTypeError
		if errors.As(bad, &too) {
			return Line{}, bad
		}
		return Line{}, s.damage(s.line+1, at, bad.Error())
	}
}

var errUnparsable = errors.New("no event")

// check tells whether raw may follow what was read so far.
func (s *scanner) check(raw []byte, at int64, last bool) (Line, error) {
	p, ok := parsePrefix(raw)
	if last && !valid(raw) {
		return Line{}, fmt.Errorf("%w: not one whole JSON value", errUnparsable)
	}
	if !ok {
		e, err := session.ParseEvent(raw)
		if err != nil {
			return Line{}, fmt.Errorf("%w: %w", errUnparsable, err)
		}
		p.seq, p.typ, p.time = e.Seq, []byte(e.Type), e.Time
	}
	if p.seq != s.seq {
		return Line{}, fmt.Errorf("seq %d where %d was to come", p.seq, s.seq)
	}
	typ, ok := s.types[string(p.typ)]
	if !ok {
		typ = string(p.typ)
		if !session.KnownType(typ) {
			e, err := session.ParseEvent(raw)
			if err != nil {
				return Line{}, fmt.Errorf("%w: %w", errUnparsable, err)
			}
			if !e.Ignorable {
				return Line{}, &UnknownTypeError{Path: s.path, Line: s.line + 1, Type: typ}
			}
		} else {
			s.types[typ] = typ
		}
	}
	return Line{Seq: p.seq, Type: typ, Time: p.time, Raw: raw, Offset: at, Number: s.line + 1, path: s.path}, nil
}

// raw reads one whole line without its newline, and tells whether it is the
// last. io.EOF where only a part of a line, or nothing, is left.
func (s *scanner) raw() (line []byte, last bool, err error) {
	searched := s.start
	for {
		if i := bytes.IndexByte(s.buf[searched:s.end], '\n'); i >= 0 {
			nl := searched + i
			// Whether it is the last is known once a byte behind it, or the end
			// of the file, was seen.
			if nl+1 < s.end || s.eof {
				line = s.buf[s.start:nl:nl]
				s.start = nl + 1
				return line, s.start == s.end, nil
			}
			searched = nl
		} else {
			searched = s.end
		}
		if s.eof {
			s.torn = int64(s.end - s.start)
			return nil, false, io.EOF
		}
		if s.end-s.start > s.limit {
			return nil, false, s.damage(s.line+1, s.offset(), fmt.Sprintf("a line longer than %d bytes", s.limit))
		}
		shift, err := s.fill()
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", s.path, err)
		}
		searched -= shift
	}
}

// fill reads on, and tells by how much it moved what is in the buffer.
func (s *scanner) fill() (shift int, err error) {
	if s.start > 0 && len(s.buf)-s.end < len(s.buf)/4 {
		shift = s.start
		copy(s.buf, s.buf[s.start:s.end])
		s.base += int64(shift)
		s.start, s.end = 0, s.end-shift
	}
	if len(s.buf)-s.end < len(s.buf)/4 {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.r.ReadAt(s.buf[s.end:], s.base+int64(s.end))
	s.end += n
	switch {
	case n > 0:
		return shift, nil // an error will come again
	case errors.Is(err, io.EOF):
		s.eof = true
		return shift, nil
	}
	return shift, err
}

// firstDamage is what a scan that found damage reports. A line that was damaged
// behind its beginning is noticed only by a gap after it, or not at all, so the
// lines before are decoded once more.
func firstDamage(r io.ReaderAt, path string, found error) error {
	var at *DamageError
	if !errors.As(found, &at) || at.Line < 2 {
		return found
	}
	s := newScanner(r, path, chunk)
	if _, _, err := s.header(); err != nil {
		return found
	}
	for s.line+1 < at.Line {
		l, err := s.next()
		if err != nil {
			return found
		}
		if _, err := l.Event(); err != nil {
			return err
		}
	}
	return found
}

func (s *scanner) damage(line int, at int64, reason string) error {
	return &DamageError{Path: s.path, Line: line, Offset: at, Reason: reason}
}
