package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// The rules of the line that the screen owns on a terminal:
//
//   - The spinner stands only where the cursor is at the beginning of a line,
//     and leaves the cursor on its line. Whatever else is written takes it away
//     first (erase), under the same lock.
//   - It is one column shorter than the terminal, so that it never wraps.
//   - While a card owns the terminal (Pause) nothing is written at all; it is
//     held, and written by the Resume that ends the last card.

const (
	eraseLine  = "\r\x1b[K"
	frameTime  = 100 * time.Millisecond
	holdAtMost = 1 << 20 // bytes held back while a card is up
)

// locked runs do unless the screen is closed.
func (s *Screen) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		do()
	}
}

// Pause gives the terminal to a card. Calls nest.
func (s *Screen) Pause() {
	s.locked(func() {
		s.endText()
		s.erase()
		s.paused++
	})
}

// Resume takes the terminal back and shows what happened meanwhile.
func (s *Screen) Resume() {
	s.locked(func() {
		if s.paused == 0 {
			return
		}
		if s.paused--; s.paused == 0 {
			s.flush()
			s.nudge()
		}
	})
}

func (s *Screen) flush() {
	if s.dropped {
		s.emit("[the beginning of what happened meanwhile is left out]\n")
	}
	s.emit(s.held.String())
	s.held.Reset()
	s.dropped = false
}

// write is the way out for everything but the spinner.
func (s *Screen) write(text string) {
	if s.paused > 0 {
		s.held.WriteString(text)
		if s.held.Len() > holdAtMost {
			s.dropLines(s.held.Len() - holdAtMost/2) // half at once, so that dropping stays cheap
		}
		return
	}
	s.erase()
	s.emit(text)
}

// dropLines drops whole lines, at least so many bytes, from the front.
func (s *Screen) dropLines(atLeast int) {
	rest := s.held.Bytes()[atLeast:]
	for i, c := range rest {
		if c == '\n' {
			rest = rest[i+1:]
			break
		}
	}
	kept := append([]byte(nil), rest...)
	s.held.Reset()
	s.held.Write(kept)
	s.dropped = true
}

// emit writes. A screen that cannot be written to any more is not worth a run.
func (s *Screen) emit(text string) {
	if text != "" {
		_, _ = s.to.Write([]byte(text))
	}
}

// line writes a whole line; streamed text before it is ended first.
func (s *Screen) line(text string) {
	s.endText()
	s.write(text + "\n")
}

// endText ends the line of streamed text, if the cursor is within one.
func (s *Screen) endText() {
	if s.tail != "" {
		s.stream(s.tail + "\n") // a carriage return that nothing followed
		s.tail = ""
	}
	if s.column {
		s.write("\n")
		s.column = false
	}
	s.kind = ""
}

func (s *Screen) erase() {
	if s.drawn {
		s.emit(eraseLine)
		s.drawn = false
	}
}

// nudge tells the spinner's goroutine that something is going on.
func (s *Screen) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// spin is the spinner's goroutine.
func (s *Screen) spin() {
	timer := time.NewTimer(frameTime)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-timer.C:
		}
		if s.draw() {
			timer.Reset(frameTime)
			continue
		}
		select {
		case <-s.quit:
			return
		case <-s.wake:
			timer.Reset(frameTime)
		}
	}
}

// draw draws the next frame and says whether there is more to draw.
func (s *Screen) draw() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, since := s.doing()
	if s.closed || what == "" || s.paused > 0 {
		return false
	}
	if s.column { // text stands on the line; it may go on
		return true
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	if s.o.ASCII {
		frames = []rune(`|/-\`)
	}
	s.frame = (s.frame + 1) % len(frames)
	took := ""
	if d := time.Since(since); d >= time.Minute {
		took = "  " + Took(d)
	} else if d >= time.Second {
		took = fmt.Sprintf("  %d s", int(d.Seconds()))
	}
	text := s.fit(string(frames[s.frame])+" "+what, 1+width(took)) + took
	s.emit(eraseLine + s.style.dim.Sprint(text))
	s.drawn = true
	return true
}

// doing says what the person waits for, and since when.
func (s *Screen) doing() (string, time.Time) {
	if len(s.tools) == 0 {
		if s.think.IsZero() {
			return "", time.Time{}
		}
		return "thinking", s.think
	}
	var first running
	for _, t := range s.tools {
		if first.since.IsZero() || t.since.Before(first.since) || t.since.Equal(first.since) && t.number < first.number {
			first = t
		}
	}
	what := strings.TrimSpace(first.name + " " + first.title)
	if n := len(s.tools) - 1; n > 0 {
		what = fmt.Sprintf("%d more, %s", n, what)
	}
	return what, first.since
}

// fit cuts a line to the terminal, less some columns.
func (s *Screen) fit(text string, less int) string {
	return Fit(text, s.o.Width()-less, s.ellipsis())
}

// safe makes untrusted text harmless on a terminal; in a pipe the bytes are exact.
func (s *Screen) safe(text string) string {
	if s.o.Terminal {
		return Visible(text)
	}
	return text
}

func (s *Screen) ellipsis() string {
	if s.o.ASCII {
		return "..."
	}
	return "…"
}

func (s *Screen) bullet() string {
	if s.o.ASCII {
		return "-"
	}
	return "·"
}

func width(s string) int { return runewidth.StringWidth(s) }
