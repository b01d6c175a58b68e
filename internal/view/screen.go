package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"deepseek/internal/session"
)

// ScreenOptions say what the screen may use. The zero value is a plain pipe.
type ScreenOptions struct {
	Terminal bool       // text is shown as it streams, and untrusted text made visible
	Cursor   bool       // the terminal can go back on its line: a spinner may be drawn
	Colour   bool       // escapes for colours
	ASCII    bool       // the locale cannot show more
	Width    func() int // columns, asked anew for each line; nil, or no terminal = 200
	Quiet    bool       // only session id, announcements and errors
	Verbose  bool
}

// Screen shows a run as it happens, on stderr. On a terminal the model's text
// streams, and a spinner stands on a line of its own while there is nothing else
// to see; elsewhere whole lines are written and no escapes.
//
// mu owns everything below it. One goroutine draws the spinner, ten times a
// second while something is going on and not at all otherwise; Close ends it.
// All methods may be called from any goroutine. Failing to write stops nothing:
// the run goes on without its screen.
type Screen struct {
	o     ScreenOptions
	style style

	mu       sync.Mutex
	to       io.Writer
	paused   int // how many cards own the terminal
	above    func([]string) bool
	held     bytes.Buffer       // what is to be shown after them
	dropped  bool               // more was held than is kept
	column   bool               // the cursor is within a line of streamed text
	kind     string             // of the text being streamed, "" between messages
	tail     string             // the end of a piece that may belong to the next one
	streamed strings.Builder    // text of this message so far
	last     string             // text of the last message that had any
	lastOK   bool               // no tool has run since
	tools    map[string]running // by call id
	think    time.Time          // since when the model thinks; zero = it does not
	drawn    bool               // the spinner is on the line
	frame    int
	closed   bool

	wake, quit chan struct{}
	done       sync.WaitGroup
}

type running struct {
	name, title string
	since       time.Time
	number      int
}

// NewScreen makes a screen that writes to w. The caller owes Close.
func NewScreen(w io.Writer, o ScreenOptions) *Screen {
	if o.Width == nil || !o.Terminal { // a log is no place to cut for somebody's window
		o.Width = func() int { return 200 }
	}
	s := &Screen{o: o, style: newStyle(o.Colour), to: w, tools: map[string]running{}, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	if o.Terminal && o.Cursor && !o.Quiet {
		s.done.Go(s.spin)
	}
	return s
}

// Close takes the spinner away, shows what was held back, and ends the
// goroutine. Later calls of any method do nothing.
func (s *Screen) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.paused = 0
	s.flush()
	s.endText()
	s.erase()
	s.closed = true
	close(s.quit)
	s.mu.Unlock()
	s.done.Wait()
}

// Session shows the id, on a line of its own. It is never hidden.
func (s *Screen) Session(id string) { s.Announce("session " + id) }

// Announce shows lines that -q does not hide, and that stay together: a
// question, how to answer it.
func (s *Screen) Announce(lines ...string) {
	s.locked(func() {
		safe := make([]string, len(lines))
		for i, l := range lines {
			safe[i] = s.safe(l)
		}
		if s.paused > 0 && s.above != nil && s.above(safe) {
			return
		}
		for _, l := range safe {
			s.line(l)
		}
	})
}

// Above names who shows announcements while a card owns the terminal. show does
// not block, and says whether it took the lines.
func (s *Screen) Above(show func(lines []string) bool) {
	s.locked(func() { s.above = show })
}

// Error shows what went wrong. It is never hidden.
func (s *Screen) Error(line string) {
	s.locked(func() { s.line(s.style.bad.Sprint(s.safe(line))) })
}

// Note shows a remark.
func (s *Screen) Note(line string) {
	s.locked(func() {
		if !s.o.Quiet {
			s.line(s.style.dim.Sprint(s.safe(line)))
		}
	})
}

// Detail is a Note for -v alone.
func (s *Screen) Detail(line string) {
	if s.o.Verbose {
		s.Note(line)
	}
}

// Thinking says that a request is out: the spinner stands until something comes.
func (s *Screen) Thinking() {
	s.locked(func() {
		s.think = time.Now()
		s.nudge()
	})
}

// Idle says that nothing is going on.
func (s *Screen) Idle() {
	s.locked(func() {
		s.think = time.Time{}
		clear(s.tools)
		s.erase()
	})
}

// Delta shows a piece of the model's text or reasoning, on a terminal.
func (s *Screen) Delta(kind, text string) {
	s.locked(func() {
		if text == "" || !s.o.Terminal || s.o.Quiet {
			return
		}
		s.think = time.Time{}
		if s.kind != kind {
			s.endText()
			s.kind = kind
		}
		if kind == session.BlockText {
			s.streamed.WriteString(text)
		}
		s.stream(s.tail + text)
	})
}

// stream writes a piece, keeping back a carriage return at its end: whether it
// is half of a line end shows with the next piece.
func (s *Screen) stream(text string) {
	s.tail = ""
	if strings.HasSuffix(text, "\r") {
		text, s.tail = text[:len(text)-1], "\r"
	}
	if text == "" {
		return
	}
	shown := Visible(text)
	ended := strings.HasSuffix(shown, "\n")
	if s.kind == session.BlockReasoning {
		shown = s.style.dim.Sprint(shown)
	}
	s.write(shown)
	s.column = !ended
}

// Message says that a message has been committed whole. Where text does not
// stream it is shown now, except the run's final one, which stdout carries.
func (s *Screen) Message(text string, final bool) {
	s.locked(func() {
		s.think = time.Time{}
		s.endText()
		if s.o.Quiet {
			return
		}
		if !s.o.Terminal {
			if text != "" && !final {
				s.line(strings.TrimRight(text, "\n"))
			}
			return
		}
		shown := s.streamed.String()
		s.streamed.Reset()
		if shown == "" && text != "" { // nobody streamed it
			s.line(strings.TrimRight(Visible(text), "\n"))
			shown = text
		}
		if shown != "" {
			s.last, s.lastOK = shown, true
		}
	})
}

// LastText is the text that was streamed last, if no tool has run since: what
// need not be printed again on the same terminal. It is "" where nothing streams.
func (s *Screen) LastText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lastOK {
		return ""
	}
	return s.last
}

// Retry says that an attempt failed and what was seen of it does not count.
func (s *Screen) Retry(attempt int, delay time.Duration, code, message string) {
	s.locked(func() {
		s.think = time.Time{}
		partial := s.kind != ""
		s.endText()
		s.streamed.Reset()
		if s.o.Quiet {
			return
		}
		text := fmt.Sprintf("attempt %d failed: %s: %s; trying again in %s", attempt, OneLine(code), OneLine(message), Took(delay))
		if partial {
			text = "the text above is discarded; " + text
		}
		s.line(s.style.warn.Sprint(text))
		s.think = time.Now()
		s.nudge()
	})
}
