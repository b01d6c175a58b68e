package prompt

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/mattn/go-runewidth"
)

// cells measures the same whatever the locale says about ambiguous widths.
var cells = runewidth.Condition{StrictEmojiNeutral: true}

// visible makes text from a model, a tool or a file safe to draw: control
// characters, and those that change the direction or hide, become marks that can
// be read. Newlines stay, a tab becomes four columns.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r < 0x20:
			b.WriteString("^" + string(r+'@'))
		case r == 0x7f:
			b.WriteString("^?")
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	if r == '\n' {
		return false
	}
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0: // letters that look like blanks
		return true
	case 0x00AD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF:
		return true
	}
	return unicode.IsControl(r) || (r >= 0x202A && r <= 0x202E) || (r >= 0x2060 && r <= 0x206F) || (r >= 0xE0000 && r <= 0xE007F)
}

// oneLine is visible text without line breaks.
func oneLine(s string) string {
	return visible(strings.Join(strings.FieldsFunc(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return r == '\n' }), " "))
}

// clusterWidth is the columns that one visible character may take. Terminals differ on joined
// emoji; the larger count is taken, so that a line never gets wider than thought.
func clusterWidth(c string) int {
	n := 0
	for _, r := range c {
		n += cells.RuneWidth(r)
	}
	return max(n, cells.StringWidth(c))
}

func width(s string) int {
	n := 0
	for it := graphemes.FromString(s); it.Next(); {
		n += clusterWidth(it.Value())
	}
	return n
}

// wrap breaks text into lines of at most w columns, at spaces where it can. Newlines
// break too; the indentation of a line is kept. It yields at least one line.
func wrap(s string, w int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapLine(paragraph, max(w, 2))...)
	}
	return lines
}

func wrapLine(s string, w int) []string {
	var lines []string
	start, at, cols := 0, 0, 0 // of the line being filled
	space, spaceCols := -1, 0  // after the last space that has text before it
	text := false
	for it := graphemes.FromString(s); it.Next(); {
		c := it.Value()
		cw := clusterWidth(c)
		if cols+cw > w && at > start && c != " " {
			switch {
			case !text: // an indentation as wide as the line is none
				start, cols = at, 0
			case space > start:
				lines = append(lines, strings.TrimRight(s[start:space], " "))
				start, cols = space, cols-spaceCols
			default:
				lines = append(lines, s[start:at])
				start, cols = at, 0
			}
			space = -1
		}
		at += len(c)
		cols += cw
		if c != " " {
			text = true
		} else if text {
			space, spaceCols = at, cols
		}
	}
	return append(lines, strings.TrimRight(s[start:], " "))
}

// clip cuts a line to w columns, with an ellipsis where it cut.
func clip(s string, w int) string {
	if width(s) <= w {
		return s
	}
	var b strings.Builder
	n := 0
	for it := graphemes.FromString(s); it.Next(); {
		cw := clusterWidth(it.Value())
		if n+cw > w-1 {
			break
		}
		n += cw
		b.WriteString(it.Value())
	}
	return b.String() + "…"
}
