package deepseek

import (
	"bytes"
	"io"
	"strings"
)

const (
	headSize = 4 << 10 // of a body that turns out to be no event stream
	tailSize = 2 << 10 // of a stream that ends before [DONE]
)

// lineReader stands between the body and the event parser. It is for one
// goroutine. It does what the parser cannot:
//
//   - It stops the byte clock while data is handled and runs it while a read waits.
//   - It returns only when a line has ended or p is full. The parser looks at an
//     unfinished event from its start each time it is given more, so small reads
//     of a long line would cost the square of its length.
//   - It ends the last line and event of a body that stops without doing so.
//   - It keeps the first and the last bytes, since the parser drops lines that
//     are no fields, and those are where proxies say what went wrong.
type lineReader struct {
	r    io.Reader
	w    *watch
	err  error  // sticky, what the body ended with
	rest string // to be handed out before io.EOF
	size int64  // bytes read
	head []byte
	tail []byte
}

func newLineReader(r io.Reader, w *watch) *lineReader { return &lineReader{r: r, w: w} }

func (l *lineReader) Read(p []byte) (int, error) {
	n, idle := 0, 0
	for l.err == nil && n < len(p) {
		l.w.waiting()
		m, err := l.r.Read(p[n:])
		l.w.arrived()
		got := p[n : n+m]
		n += m
		l.keep(got)
		switch {
		case err == io.EOF: //nolint:errorlint // readers return it bare
			l.err, l.rest = err, "\n\n"
		case err != nil:
			l.err = err
		case m == 0:
			if idle++; idle == 100 {
				l.err = io.ErrNoProgress
			}
			continue
		}
		if bytes.IndexByte(got, '\n') >= 0 || bytes.IndexByte(got, '\r') >= 0 {
			return n, nil
		}
	}
	if n < len(p) && l.rest != "" {
		m := copy(p[n:], l.rest)
		l.rest = l.rest[m:]
		n += m
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, l.err
}

// ended tells whether the body came to a clean end.
func (l *lineReader) ended() bool { return l.err == io.EOF } //nolint:errorlint // kept bare

func (l *lineReader) keep(b []byte) {
	l.size += int64(len(b))
	if room := headSize - len(l.head); room > 0 {
		l.head = append(l.head, b[:min(room, len(b))]...)
	}
	if len(b) >= tailSize {
		l.tail = append(l.tail[:0], b[len(b)-tailSize:]...)
		return
	}
	if over := len(l.tail) + len(b) - tailSize; over > 0 {
		l.tail = l.tail[:copy(l.tail, l.tail[over:])]
	}
	l.tail = append(l.tail, b...)
}

// cut tells whether the body ended in the middle of a line.
func (l *lineReader) cut() bool {
	n := len(l.tail)
	return n > 0 && l.tail[n-1] != '\n' && l.tail[n-1] != '\r'
}

// words are the lines that are no part of an event stream: those at the
// beginning of the body, or those behind its last event, such as the text of a
// proxy that gave up in the middle.
func (l *lineReader) words(beginning bool) string {
	text := string(l.head)
	if !beginning {
		text = string(l.tail)
		if l.size > int64(len(l.tail)) { // the first line is cut
			_, text, _ = strings.Cut(text, "\n")
		}
	}
	var words []string
	for line := range strings.Lines(text) {
		whole := strings.HasSuffix(line, "\n")
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, ":")
		switch {
		case line == "" || name == "":
		case name == "data" || name == "event" || name == "id" || name == "retry":
			words = nil
		case !whole && strings.HasPrefix("data:", line):
		default:
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
