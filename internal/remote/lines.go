package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// beginning is what is kept of a line that is too long, in bytes.
const beginning = 1 << 10

// errSilent ends the input of a client that has said nothing for too long.
var errSilent = refuse(CodeClientSilent, "the client said nothing for too long and was left; one that has nothing to say pings")

// inLine is a line that came in, without its end.
type inLine struct {
	text    []byte
	tooLong bool // it went beyond the limit: text is its beginning, which may name it
}

// lineReader cuts a stream into lines. Its goroutine, run, reads ahead of the
// consumer by a bounded number of bytes, so that a busy server still notices
// that its client speaks. mu guards the queue between the two.
type lineReader struct {
	r     io.Reader
	lim   limits
	whole bool // a last line without its end is no line

	mu       sync.Mutex
	queue    []inLine
	size     int   // bytes in queue
	over     error // why no more lines come, io.EOF at the end of the stream
	stopping bool

	more chan struct{} // holds a token after a change that the consumer may wait for
	room chan struct{} // holds a token after a change that the reader may wait for
	done chan struct{} // closed when run has returned
}

func newLineReader(r io.Reader, lim limits, whole bool) *lineReader {
	return &lineReader{
		r: r, lim: lim, whole: whole,
		more: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// run reads until the stream ends, fails, is silent for too long or is stopped.
func (l *lineReader) run() {
	defer close(l.done)
	buf := bufio.NewReaderSize(armed{l}, 64<<10)
	for {
		line, err := l.next(buf)
		l.mu.Lock()
		if err == nil {
			l.queue = append(l.queue, line)
			l.size += len(line.text)
		} else {
			if errors.Is(err, os.ErrDeadlineExceeded) && !l.stopping {
				err = errSilent
			}
			l.over = err
		}
		full := l.size > l.lim.ahead
		l.mu.Unlock()
		signal(l.more)
		if err != nil {
			return
		}
		for full {
			<-l.room
			l.mu.Lock()
			full = l.size > l.lim.ahead && !l.stopping
			l.mu.Unlock()
		}
	}
}

// next reads one line.
func (l *lineReader) next(buf *bufio.Reader) (inLine, error) {
	var line inLine
	for {
		part, err := buf.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		switch {
		case line.tooLong:
		case len(line.text)+len(part) > l.lim.line:
			text := bytes.Clone(line.text[:min(len(line.text), beginning)])
			line = inLine{append(text, part[:min(len(part), beginning-len(text))]...), true} // the rest is let go
		default:
			if need := len(line.text) + len(part); need > cap(line.text) {
				// A long line is copied few times only, and has no more room than it may need.
				line.text = slices.Grow(line.text, min(max(need, 2*cap(line.text)), l.lim.line)-len(line.text))
			}
			line.text = append(line.text, part...)
		}
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && !l.whole && (len(line.text) > 0 || line.tooLong):
			return line, nil // the next call finds the end
		default:
			return inLine{}, err
		}
	}
}

// failed is why no more lines come, nil as long as they may.
func (l *lineReader) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// take returns the next line. ok is false if there is none yet; then err says whether none will come.
func (l *lineReader) take() (line inLine, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return inLine{}, false, l.over
	}
	line = l.queue[0]
	l.queue = l.queue[1:]
	l.size -= len(line.text)
	signal(l.room)
	return line, true, nil
}

// stop ends the input. What a socket's peer has sent by then is still read;
// from then on it cannot send any more.
func (l *lineReader) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
	signal(l.room)
	switch c := l.r.(type) {
	case interface{ CloseRead() error }:
		// It fails only where the connection has ended already.
		_ = c.CloseRead()
	case interface{ SetReadDeadline(time.Time) error }:
		// It fails only where the stream has ended already, or cannot be
		// interrupted; then its owner closes it.
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// armed reads from the stream, each time for as long as silence is borne. That
// time has two parts: where this process stood still for the first, the second
// is there to read what was sent meanwhile.
type armed struct{ l *lineReader }

func (a armed) Read(p []byte) (int, error) {
	last := a.l.lim.silence / 10
	n, err := a.within(p, a.l.lim.silence-last)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = a.within(p, last)
	}
	return n, err
}

func (a armed) within(p []byte, silence time.Duration) (int, error) {
	if d, ok := a.l.r.(interface{ SetReadDeadline(time.Time) error }); ok && silence > 0 {
		a.l.mu.Lock()
		var err error
		if !a.l.stopping {
			err = d.SetReadDeadline(time.Now().Add(silence))
		}
		a.l.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
	return a.l.r.Read(p)
}

// signal leaves a token, if there is none.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
