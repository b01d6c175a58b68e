package search

import (
	"bytes"
	"context"
	"errors"
	"syscall"
	"unicode/utf8"
)

// found is what one file holds.
type found struct {
	path  string // as answers have it
	lines []line // the first maxLines
	total int
}

type line struct {
	number int
	text   string
}

const (
	bufSize = 256 << 10
	maxBuf  = 4 << 20 // a longer line is searched in pieces
)

var bom = []byte("\xEF\xBB\xBF")

// errBinary says that a file is no text.
var errBinary = errors.New("binary")

// search reads a file in pieces, whatever its size, and collects the lines that
// match. A file with a NUL byte is binary: at the beginning nothing is searched,
// later on what follows is not.
func (m *matcher) search(ctx context.Context, s *scratch, path string) (found, error) {
	// Plain system calls: the files are many and small, and a regular file
	// gains nothing from the poller. O_NONBLOCK keeps a FIFO that took the
	// file's place from blocking, O_NOFOLLOW a link from being followed.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return found{}, err
	}
	defer syscall.Close(fd) //nolint:errcheck // opened for reading
	if s.buf == nil {
		s.buf = make([]byte, bufSize)
	}
	var f found
	number := 1 // of the first line in the buffer
	filled := 0
	for first := true; ; {
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		var eof bool
		if filled, eof, err = fill(fd, s.buf, filled); err != nil {
			return f, err
		}
		block := s.buf[:filled]
		if !eof {
			end := bytes.LastIndexByte(block, '\n') + 1
			if end == 0 && len(s.buf) < maxBuf {
				s.buf = append(s.buf, make([]byte, len(s.buf))...)
				continue
			}
			if end > 0 {
				block = block[:end]
			}
		}
		if nul := bytes.IndexByte(block, 0); nul >= 0 {
			if first || f.total == 0 {
				return f, errBinary
			}
			return f, nil
		}
		used := len(block)
		if first { // a byte order mark is no part of the first line, as for read
			block = bytes.TrimPrefix(block, bom)
			first = false
		}
		counted := 0
		m.lines(s, block, func(from, to int) {
			f.total++
			if len(f.lines) < maxLines {
				number += bytes.Count(block[counted:from], []byte{'\n'})
				counted = from
				f.lines = append(f.lines, line{number, m.shorten(block[from:to])})
			}
		})
		if eof {
			return f, nil
		}
		number += bytes.Count(block[counted:], []byte{'\n'})
		filled = copy(s.buf, s.buf[used:filled])
	}
}

// fill reads until the buffer is full or the file ends.
func fill(fd int, buf []byte, filled int) (int, bool, error) {
	for filled < len(buf) {
		n, err := syscall.Read(fd, buf[filled:])
		switch {
		case err == syscall.EINTR: //nolint:errorlint // system calls return it bare
			continue
		case err != nil:
			return filled, false, err
		case n == 0:
			return filled, true, nil
		}
		filled += n
	}
	return filled, false, nil
}

const (
	maxLine   = 300      // bytes of a line that are shown
	maxSought = 64 << 10 // bytes of a line in which the place of the match is looked for
)

// shorten cuts a long line to what is around the match, on rune borders.
func (m *matcher) shorten(text []byte) string {
	if len(text) <= maxLine {
		return string(text)
	}
	from, at := 0, -1
	if m.pure {
		at = bytes.Index(text, m.literals[0])
	} else if loc := m.re.FindIndex(text[:min(len(text), maxSought)]); loc != nil {
		at = loc[0]
	}
	if at > maxLine*2/3 {
		from = min(at-maxLine/3, len(text)-maxLine)
	}
	to := from + maxLine
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	out := string(text[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}
