package view

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Excerpt is the beginning and the end of a text that is longer than so many
// lines or bytes, with a line between them that says how much is left out. It
// does not keep the text itself in memory.
func Excerpt(s string, lines, size int) string {
	if len(s) <= size && strings.Count(strings.TrimSuffix(s, "\n"), "\n") < lines {
		return s
	}
	endLines, endSize := lines/3, size/3
	head := beginning(s, lines-endLines, size-endSize)
	tail := ending(s[len(head):], endLines, endSize)
	left := s[len(head) : len(s)-len(tail)]
	if left == "" { // the rest is a newline or two
		return s
	}
	what := fmt.Sprintf("%s bytes", Count(int64(len(left))))
	if n := strings.Count(strings.Trim(left, "\n"), "\n"); n > 0 {
		what = fmt.Sprintf("%s lines, %s", Count(int64(n+1)), what)
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(head, "\n"))
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("[… " + what + " left out …]")
	if tail = strings.TrimLeft(tail, "\n"); tail != "" {
		b.WriteString("\n" + tail)
	}
	return b.String()
}

// beginning is at most so many lines and bytes of the front.
func beginning(s string, lines, size int) string {
	end := min(size, len(s))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	for i := range end {
		if s[i] == '\n' {
			if lines--; lines <= 0 {
				return s[:i+1]
			}
		}
	}
	return s[:end]
}

// ending is at most so many lines and bytes of the back. A newline at the very
// end ends a line and begins none.
func ending(s string, lines, size int) string {
	if lines <= 0 {
		return ""
	}
	start := max(len(s)-size, 0)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	for i := len(s) - 2; i >= start; i-- {
		if s[i] == '\n' {
			if lines--; lines <= 0 {
				return s[i+1:]
			}
		}
	}
	return s[start:]
}

// Wrap breaks text at words into lines of at most so many columns. What does not
// come first is indented. A line that begins with a space is left as it is.
func Wrap(text string, columns int, indent string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") {
			out = append(out, line)
			continue
		}
		out = append(out, wrapLine(line, columns)...)
	}
	return strings.Join(out, "\n"+indent)
}

// wrapLine breaks a line into lines of at most so many columns, at spaces where
// there are any. Nothing but the spaces at the breaks is lost.
func wrapLine(line string, columns int) []string {
	columns = max(columns, 1)
	var out []string
	for line != "" {
		// Measuring looks at the whole text, so it is handed a piece.
		piece := line
		if most := columns*8 + 64; len(piece) > most {
			for most > 0 && !utf8.RuneStart(piece[most]) {
				most--
			}
			piece = piece[:most]
		}
		part := runewidth.Truncate(piece, columns, "")
		if part == "" { // one character wider than the line
			_, n := utf8.DecodeRuneInString(line)
			part = line[:n]
		}
		if len(part) == len(line) {
			return append(out, line)
		}
		text := strings.TrimLeft(part, " ")
		if line[len(part)] != ' ' && text != "" {
			if at := strings.LastIndexByte(text, ' '); at > 0 {
				part = part[:len(part)-len(text)+at]
			}
		}
		line = strings.TrimLeft(line[len(part):], " ")
		out = append(out, strings.TrimRight(part, " "))
	}
	if out == nil {
		return []string{""}
	}
	return out
}
