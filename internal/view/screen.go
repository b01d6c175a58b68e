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
	Echo     Echo // nil: what is typed is not the screen's to hide

	// Background tells whether the terminal is another job's now, which a spinner is
	// not to write over. It is asked for each frame; nil: it never is.
	Background func() bool
}

// Echo switches whether the terminal shows what is typed. Off may be called again.
type Echo interface {
	Off()
	On()
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
	held     bytes.Buffer        // what is to be shown after them
	dropped  bool                // more was held than is kept
	flow     flow                // of streamed text, broken at words
	out      []byte              // of one piece, kept for the next
	before   map[string][]string // announcements that wait for the beginning of a call, by its id
	after    map[string][]string // announcements that follow the line of a call, by its id
	kind     string              // of the text being streamed, "" between messages
	tail     string              // the end of a piece that may belong to the next one
	streamed strings.Builder     // text of this message so far
	last     string              // text of the last message that had any
	lastOK   bool                // no tool has run since
	tools    map[string]running  // by call id
	subs     map[string]bool     // calls within calls, where they are not shown
	think    time.Time           // since when the model thinks; zero = it does not
	drawn    bool                // the spinner is on the line
	hidden   bool                // what is typed is not shown
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
	if o.Background == nil {
		o.Background = func() bool { return false }
	}
	s := &Screen{o: o, style: newStyle(o.Colour), to: w, tools: map[string]running{}, subs: map[string]bool{}, before: map[string][]string{}, after: map[string][]string{}, flow: flow{columns: o.Width}, wake: make(chan struct{}, 1), quit: make(chan struct{})}
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
	s.followAll()
	s.erase()
	s.echo()
	s.closed = true
	close(s.quit)
	s.mu.Unlock()
	s.done.Wait()
}

// Thinking says that a request is out, and since when: the spinner stands until
// something comes.
func (s *Screen) Thinking(since time.Time) {
	s.locked(func() {
		s.think = since
		s.nudge()
	})
}

// Idle says that nothing is going on.
func (s *Screen) Idle() {
	s.locked(func() {
		s.think = time.Time{}
		clear(s.tools)
		s.erase()
		s.followAll()
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

// discard marks text that was streamed and is in no message: that of an attempt
// that failed and was not repeated.
func (s *Screen) discard() {
	s.locked(func() {
		partial := s.kind != ""
		s.endText()
		s.streamed.Reset()
		if partial {
			s.say(s.style.warn.Sprint, "the text above is discarded")
		}
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
	on, off := "", ""
	if s.kind == session.BlockReasoning {
		on, off = s.style.dimOn, s.style.dimOff
	}
	s.out = s.flow.text(append(s.out[:0], on...), Visible(text))
	if len(s.out) > len(on) {
		s.write(append(s.out, off...))
	}
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
			s.kind = session.BlockText
			s.stream(strings.TrimRight(text, "\n"))
			s.endText()
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
		s.say(s.style.warn.Sprint, text)
		s.think = time.Now()
		s.nudge()
	})
}
