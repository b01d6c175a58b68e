package prompt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The plain face of a card, where the cursor cannot be moved or the terminal is too narrow:
// numbered lines printed once, answers read a line at a time through the terminal's own line
// editing. The terminal stays as it is, so Ctrl+C and Ctrl+Z are the system's.

// plainText is the card in plain lines. It is printed again only when it has changed.
func (s *cardState) plainText() string {
	var b strings.Builder
	if s.reviewing() {
		b.WriteString("Review\n")
		for i, q := range s.card.Questions {
			fmt.Fprintf(&b, "%d. %s: %s\n", i+1, oneLine(firstOf(q.Header, q.Question)), s.summary(s.answer(i)))
		}
		b.WriteString("Enter sends; a number goes back to that question.\n")
		return b.String()
	}
	q := s.card.Questions[s.at]
	b.WriteString(s.name())
	if n := len(s.card.Questions); n > 1 {
		fmt.Fprintf(&b, " (%d/%d)", s.at+1, n)
	}
	b.WriteString("\n" + visible(strings.TrimSpace(q.Question)) + "\n")
	if q.Detail != "" {
		b.WriteString(visible(strings.Trim(q.Detail, "\n")) + "\n")
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "%d. %s", i+1, oneLine(o.Label))
		if o.Description != "" {
			b.WriteString(" - " + oneLine(o.Description))
		}
		b.WriteByte('\n')
	}
	switch {
	case len(q.Options) == 0:
		b.WriteString("Type an answer, then Enter.")
	case q.MultiSelect:
		b.WriteString("Type numbers such as 1,3, or an answer of your own, then Enter.")
	case s.card.isQuestion():
		b.WriteString("Type a number, or an answer of your own, then Enter. Enter alone takes 1.")
	default:
		b.WriteString("Type a number, then Enter. Enter alone takes 1.")
	}
	if s.card.isQuestion() {
		b.WriteString("\nCtrl+T and Enter takes time, Ctrl+O and Enter hands over, Ctrl+L and Enter is for later.")
	}
	b.WriteByte('\n')
	return b.String()
}

// line applies a line that was typed at the plain face.
func (s *cardState) line(text string, now time.Time) effect {
	text = strings.TrimSpace(text)
	switch text {
	case "":
		return s.key(key{code: keyEnter}, now)
	case "\x0c": // nothing to hide: the countdown goes on
		s.escOnce = false
		return s.key(key{code: keySkip}, now)
	case "\x14":
		return s.key(key{code: keyCtrlT}, now)
	case "\x0f":
		return s.key(key{code: keyCtrlO}, now)
	case "\x1b":
		return s.key(key{code: keyEsc}, now)
	case "\x1b\x1b":
		s.key(key{code: keyEsc}, now)
		return s.escPlain(now)
	}
	s.note, s.keyed, s.escOnce = "", true, false
	text = cleanPaste([]byte(text))
	if s.reviewing() {
		if !s.drawn {
			return effectNone
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(s.card.Questions) {
			s.note = fmt.Sprintf("a number from 1 to %d, or Enter", len(s.card.Questions))
			return effectNone
		}
		s.review = n - 1
		return s.key(key{code: keyEnter}, now)
	}
	if !s.choose(text) {
		return effectNone
	}
	s.freeze()
	if !s.drawn || now.Before(s.guardUntil) { // its Enter was meant for something else
		s.note = "typed before the question was shown: " + oneLine(s.redact(text)) + ". Enter takes it"
		return effectNone
	}
	return s.enter(now)
}

// escPlain: there is nothing to hide, so only what closes a card is left of Esc twice.
func (s *cardState) escPlain(now time.Time) effect {
	eff := s.key(key{code: keyEsc}, now)
	s.hidden = false
	return eff
}

// choose takes a typed line as numbers of options, else as words. False: it is neither.
func (s *cardState) choose(text string) bool {
	it, q := &s.items[s.at], s.card.Questions[s.at]
	n := len(q.Options)
	if it.row < n && s.takesText(s.at, it.row) && s.focused { // the words that were asked for
		it.texts[it.row] = field{text, len(text)}
		return true
	}
	numbers, ok := optionNumbers(text, n)
	switch {
	case ok && q.MultiSelect:
		clear(it.marked)
		for _, row := range numbers {
			it.marked[row] = true
		}
		it.row = numbers[0]
		it.texts[n] = field{}
	case ok && len(numbers) == 1:
		it.row = numbers[0]
	case s.card.isQuestion() || n == 0:
		it.row = n
		it.texts[n] = field{text, len(text)}
	default:
		s.note = fmt.Sprintf("a number from 1 to %d", n)
		return false
	}
	return true
}

// optionNumbers reads "2" or "1, 3" as rows; false if anything else is in it.
func optionNumbers(text string, n int) ([]int, bool) {
	var rows []int
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		i, err := strconv.Atoi(word)
		if err != nil || i < 1 || i > n {
			return nil, false
		}
		rows = append(rows, i-1)
	}
	return rows, len(rows) > 0
}
