package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// sieve reads a program's output and lets through whole lines that are
// messages. What else a program prints there is dropped. A program that goes on
// and on without an answer fails. It is for one reader; mu owns bad, Close may be
// called by anybody.
type sieve struct {
	file *os.File
	buf  *bufio.Reader
	line []byte // passed on in part
	rest []byte // of line
	idle int    // bytes since the last answer
	max  int    // of a line, and of idle

	mu  sync.Mutex
	bad error
}

func newSieve(f *os.File, limit int) *sieve {
	return &sieve{file: f, buf: bufio.NewReaderSize(f, 64<<10), max: limit}
}

// Read returns parts of messages, each with its newline.
func (s *sieve) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next finds the next message.
func (s *sieve) next() error {
	for {
		s.line = s.line[:0]
		for {
			part, err := s.buf.ReadSlice('\n')
			s.line = append(s.line, part...)
			if len(s.line) > s.max {
				return s.fail(fmt.Errorf("it sent a line of more than %d MB", s.max>>20))
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if errors.Is(err, io.EOF) && len(s.line) > 0 {
				s.line = append(s.line, '\n')
				break
			}
			return err
		}
		message, answer := classify(s.line)
		switch s.idle += len(s.line); {
		case answer:
			s.idle = 0
		case s.idle > s.max:
			return s.fail(fmt.Errorf("it sent more than %d MB without an answer among it", s.max>>20))
		}
		if message {
			if s.rest = s.line; answer {
				s.rest = understood(s.line)
			}
			return nil
		}
	}
}

// classify tells whether the line is one JSON-RPC message, and whether that is an answer.
func classify(line []byte) (message, answer bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return false, false
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	message = json.Unmarshal(line, &m) == nil && m.Version == "2.0"
	return message, message && (m.Result != nil || m.Error != nil)
}

func (s *sieve) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = err
	return err
}

// fault is what the program did wrong, nil if nothing.
func (s *sieve) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

// Close ends a Read that waits. Closing twice is fine.
func (s *sieve) Close() error {
	if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// lastLine keeps the last line with text that was written. It is safe for
// concurrent use; mu owns it.
type lastLine struct {
	mu          sync.Mutex
	whole, part []byte
}

const maxLast = 1 << 10 // bytes

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range bytes.Lines(p) {
		l.part = append(l.part, b[:min(len(b), maxLast-min(len(l.part), maxLast))]...)
		if b[len(b)-1] == '\n' {
			if len(bytes.TrimSpace(l.part)) > 0 {
				l.whole = append(l.whole[:0], bytes.TrimSpace(l.part)...)
			}
			l.part = l.part[:0]
		}
	}
	return len(p), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rest := bytes.TrimSpace(l.part); len(rest) > 0 {
		return string(rest)
	}
	return string(l.whole)
}

// lineWriter hands whole lines on; a long one is cut.
type lineWriter struct {
	part []byte
	to   func(string)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	for b := range bytes.Lines(p) {
		w.part = append(w.part, b[:min(len(b), maxLast-min(len(w.part), maxLast))]...)
		if b[len(b)-1] == '\n' {
			w.to(line(string(w.part), maxLast))
			w.part = w.part[:0]
		}
	}
	return len(p), nil
}
