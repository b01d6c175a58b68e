package view

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible makes text of unknown origin safe to write to a terminal: control
// sequences, direction overrides and broken UTF-8 are replaced by something
// that can be seen. Newline and tab stay, and a carriage return before a
// newline is dropped. Text without any of these is returned as it is.
//
//	ESC and the other C0 controls  ^[ ^A ^?
//	C1 controls                    <U+009B>
//	direction, line separators     <U+202E>
//	what takes no room             <U+200B>
//	bytes that are no UTF-8        <9B>
func Visible(s string) string {
	i := firstHidden(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<%02X>", s[i])
		case r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
		case !hidden(r):
			b.WriteString(s[i : i+n])
		case r < 0x80:
			b.WriteByte('^')
			b.WriteByte(byte(r) ^ 0x40)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
		i += n
	}
	return b.String()
}

// OneLine is Visible for text that has to stay on one line: runs of line ends,
// tabs and spaces become one space. Other white space may mean something else to
// a program than to a person, and is made visible.
func OneLine(s string) string {
	blank := func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }
	return Visible(strings.Join(strings.FieldsFunc(strings.ReplaceAll(s, "\r\n", "\n"), blank), " "))
}

func firstHidden(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if hidden(rune(c)) {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if hidden(r) || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// hidden says whether a terminal would act on the rune, reorder text by it, or
// show nothing for it. The joiners and selectors that emoji are made of are not
// among these.
func hidden(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	case r < 0xa0: // DEL and C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	case r == 0x00ad, r == 0x180e, r == 0x200b, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xe0000 && r <= 0xe007f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // letters that look like blanks
		return true
	}
	return false
}
