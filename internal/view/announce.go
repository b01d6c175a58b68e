package view

import (
	"maps"
	"slices"
	"strings"
)

// Session shows the id, on a line of its own that is never broken, so that it can
// be copied. It is never hidden.
func (s *Screen) Session(id string) {
	s.locked(func() { s.line("session " + s.safe(id)) })
}

// Announce shows lines that -q does not hide, and that stay together: a
// question, how to answer it.
func (s *Screen) Announce(lines ...string) {
	s.locked(func() { s.announce(lines) })
}

// AnnounceAfter is Announce for what became of a call: the lines follow the line
// of the call if that has yet to come. Who calls it and who tells of the call's
// end need not agree on the order.
func (s *Screen) AnnounceAfter(callID string, lines ...string) {
	s.locked(func() {
		_, runs := s.tools[callID]
		if _, waits := s.before[callID]; runs || waits {
			s.after[callID] = append(s.after[callID], lines...)
			return
		}
		s.announce(lines)
	})
}

// AnnounceOf is Announce for what a call asks: in a pipe the lines wait for the
// event that the call has begun, and so for all that was said before it. On a
// terminal, where text has been shown as it came, a person is not kept waiting.
func (s *Screen) AnnounceOf(callID string, lines ...string) {
	s.locked(func() {
		if _, ok := s.tools[callID]; ok || s.subs[callID] || s.o.Terminal {
			s.announce(lines)
			return
		}
		s.before[callID] = append(s.before[callID], lines...)
	})
}

// begun shows what waited for the beginning of a call.
func (s *Screen) begun(callID string) {
	if lines, ok := s.before[callID]; ok {
		delete(s.before, callID)
		s.announce(lines)
	}
}

// follow shows what was to follow the line of a call.
func (s *Screen) follow(callID string) {
	if lines, ok := s.after[callID]; ok {
		delete(s.after, callID)
		s.announce(lines)
	}
}

// followAll shows what was to follow lines that do not come any more.
func (s *Screen) followAll() {
	for _, id := range slices.Sorted(maps.Keys(s.before)) {
		s.begun(id)
	}
	for _, id := range slices.Sorted(maps.Keys(s.after)) {
		s.follow(id)
	}
}

func (s *Screen) announce(lines []string) {
	safe := make([]string, len(lines))
	for i, l := range lines {
		safe[i] = s.safe(l)
	}
	safe = s.prose(safe...)
	if s.paused > 0 && s.above != nil && s.above(safe) {
		return
	}
	for _, l := range safe {
		s.line(l)
	}
}

// Above names who shows announcements while a card owns the terminal. show does
// not block, and says whether it took the lines.
func (s *Screen) Above(show func(lines []string) bool) {
	s.locked(func() { s.above = show })
}

// Error shows what went wrong. It is never hidden.
func (s *Screen) Error(line string) {
	s.locked(func() { s.say(s.style.bad.Sprint, s.safe(line)) })
}

// Note shows a remark.
func (s *Screen) Note(line string) {
	s.locked(func() {
		if !s.o.Quiet {
			s.say(s.style.dim.Sprint, s.safe(line))
		}
	})
}

// Hint is a Note that ends with a command. The command is never broken, so that
// it can be copied: where it does not fit behind the words it has its own line.
func (s *Screen) Hint(words, command string) {
	s.locked(func() {
		if s.o.Quiet {
			return
		}
		words, command := s.safe(words)+":", s.safe(command)
		if !s.o.Terminal || width(words+" "+command) <= s.o.Width() {
			s.line(s.style.dim.Sprint(words + " " + command))
			return
		}
		s.say(s.style.dim.Sprint, words)
		s.line(s.style.dim.Sprint("  " + command))
	})
}

// say shows lines of prose in a colour.
func (s *Screen) say(colour paint, text string) {
	for _, l := range s.prose(text) {
		s.line(colour(l))
	}
}

// prose breaks lines at words for the terminal. A line that begins with a space
// is a command, to be copied whole. Elsewhere lines are as long as they are.
func (s *Screen) prose(texts ...string) []string {
	if !s.o.Terminal {
		return texts
	}
	var out []string
	for _, text := range texts {
		for l := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(l, " ") {
				out = append(out, l)
				continue
			}
			out = append(out, wrapLine(l, s.o.Width())...)
		}
	}
	return out
}

// Detail is a Note for -v alone.
func (s *Screen) Detail(line string) {
	if s.o.Verbose {
		s.Note(line)
	}
}
