package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"deepseek/internal/session"
)

// The rules of the line that the screen owns on a terminal:
//
//   - The spinner stands only where the cursor is at the beginning of a line,
//     and leaves it there, so that what is typed meanwhile is shown over it.
//     Whatever else is written takes it away first (erase), under the same lock.
//   - It is one column shorter than the terminal, so that it does not wrap. A
//     terminal that gets narrower may break it; it is the last thing on the
//     screen, so everything from the cursor on is erased.
//   - In the background of a shell there is no spinner. Where one stood when the
//     process was stopped the shell has gone on below it: it is left as it is.
//   - Once the spinner was drawn, what is typed is not shown until a card begins
//     or the screen ends.
//   - While a card owns the terminal (Pause) nothing is written at all; it is
//     held, and written by the Resume that ends the last card.

const (
	eraseLine  = "\r\x1b[K\x1b[1C\x1b[J\r" // and what is below, but never a whole screen: some keep that as history
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
		s.echo()
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
		s.emit([]byte("[the beginning of what happened meanwhile is left out]\n"))
	}
	s.emit(s.held.Bytes())
	s.held.Reset()
	s.dropped = false
}

// write is the way out for everything but the spinner.
func (s *Screen) write(text []byte) {
	if s.paused > 0 {
		s.held.Write(text)
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
func (s *Screen) emit(text []byte) {
	if len(text) > 0 {
		_, _ = s.to.Write(text)
	}
}

// line writes a whole line; streamed text before it is ended first.
func (s *Screen) line(text string) {
	s.endText()
	s.write(append([]byte(text), '\n'))
}

// endText ends streamed text, and its line if the cursor is within one.
func (s *Screen) endText() {
	if s.tail != "" {
		s.stream(s.tail + "\n") // a carriage return that nothing followed
		s.tail = ""
	}
	if s.flow.within() {
		on, off := "", ""
		if s.kind == session.BlockReasoning {
			on, off = s.style.dimOn, s.style.dimOff
		}
		s.out = s.flow.end(append(s.out[:0], on...))
		s.out = append(append(s.out, off...), '\n')
		s.write(s.out)
	}
	s.flow.restart()
	s.kind = ""
}

func (s *Screen) erase() {
	if s.drawn && !s.o.Background() {
		s.emit([]byte(eraseLine))
	}
	s.drawn = false
}

// echo shows what is typed again.
func (s *Screen) echo() {
	if s.hidden {
		s.o.Echo.On()
		s.hidden = false
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
	what, more, since := s.doing()
	if s.closed || what == "" || s.paused > 0 {
		return false
	}
	if s.flow.within() { // text stands on the line; it may go on
		return true
	}
	if s.o.Background() { // until it comes back
		s.drawn = false
		return true
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	if s.o.ASCII {
		frames = []rune(`|/-\`)
	}
	s.frame = (s.frame + 1) % len(frames)
	took := more
	if d := time.Since(since); d >= time.Minute {
		took += "  " + Took(d)
	} else if d >= time.Second {
		took += fmt.Sprintf("  %d s", int(d.Seconds()))
	}
	text := s.fit(string(frames[s.frame])+" "+what, 1+width(took)) + took
	if !s.drawn && s.o.Echo != nil { // Enter would leave the line behind
		s.o.Echo.Off()
		s.hidden = true
	}
	s.emit([]byte(eraseLine + s.style.dim.Sprint(text) + "\r"))
	s.drawn = true
	return true
}

// doing says what the person waits for, what else there is, and since when.
func (s *Screen) doing() (what, more string, since time.Time) {
	if len(s.tools) == 0 {
		if s.think.IsZero() {
			return "", "", time.Time{}
		}
		return "thinking", "", s.think
	}
	var first running
	for _, t := range s.tools {
		if first.since.IsZero() || t.since.Before(first.since) || t.since.Equal(first.since) && t.number < first.number {
			first = t
		}
	}
	if n := len(s.tools) - 1; n > 0 {
		more = fmt.Sprintf("  and %d more", n)
	}
	return strings.TrimSpace(first.name + " " + first.title), more, first.since
}

// fit cuts a line to the terminal, less some columns.
func (s *Screen) fit(text string, less int) string {
	return fitWords(text, s.o.Width()-less, s.ellipsis())
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
