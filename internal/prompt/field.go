package prompt

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// field is a text being typed. The cursor stands before byte pos, always at the
// edge of a whole visible character.
type field struct {
	text string
	pos  int
}

func (f *field) blank() bool { return strings.TrimSpace(f.text) == "" }

func (f *field) insert(s string) {
	f.text = f.text[:f.pos] + s + f.text[f.pos:]
	f.pos += len(s)
	for _, e := range edges(f.text) { // a joining mark moves the edge
		if e >= f.pos {
			f.pos = e
			break
		}
	}
}

// edges are the positions at which a cursor may stand, the first and last included.
func edges(s string) []int {
	at := []int{0}
	for it := graphemes.FromString(s); it.Next(); {
		at = append(at, at[len(at)-1]+len(it.Value()))
	}
	return at
}

// neighbours are the cursor positions left and right of pos.
func (f *field) neighbours() (left, right int) {
	right = len(f.text)
	for _, e := range edges(f.text) {
		if e < f.pos {
			left = e
		}
		if e > f.pos {
			return left, e
		}
	}
	return left, right
}

// edit applies an editing key; false means that the key is none.
func (f *field) edit(k keyCode) bool {
	left, right := f.neighbours()
	switch k {
	case keyLeft:
		f.pos = left
	case keyRight:
		f.pos = right
	case keyHome, keyCtrlA:
		f.pos = strings.LastIndexByte(f.text[:f.pos], '\n') + 1
	case keyEnd, keyCtrlE:
		f.pos = f.lineEnd()
	case keyBackspace:
		f.cut(left, f.pos)
	case keyDelete:
		f.cut(f.pos, right)
	case keyCtrlK:
		f.cut(f.pos, f.lineEnd())
	case keyCtrlU:
		f.cut(strings.LastIndexByte(f.text[:f.pos], '\n')+1, f.pos)
	case keyCtrlW:
		word := strings.TrimRightFunc(f.text[:f.pos], unicode.IsSpace)
		f.cut(strings.LastIndexFunc(word, unicode.IsSpace)+1, f.pos)
	default:
		return false
	}
	return true
}

func (f *field) lineEnd() int {
	if i := strings.IndexByte(f.text[f.pos:], '\n'); i >= 0 {
		return f.pos + i
	}
	return len(f.text)
}

func (f *field) cut(from, to int) {
	f.text = f.text[:from] + f.text[to:]
	f.pos = from
}

// cluster is one visible character of a field.
type cluster struct {
	shown string
	at    int // in the text
	width int
}

// lines lays the text out in lines of at most w columns, with room for the cursor
// after the last character, and says where the cursor stands. Lines are broken behind
// spaces where there are any; a space at the very end of one is not shown.
func (f *field) lines(w int) (lines []string, row, col int) {
	w = max(w, 3)
	var open []cluster // of the line being filled
	cols, at := 0, 0
	end := func(n int) { // the line ends before its cluster n; the rest begins the next one
		var b strings.Builder
		x := 0
		for _, c := range open[:n] {
			if c.at == f.pos {
				row, col = len(lines), x
			}
			b.WriteString(c.shown)
			x += c.width
		}
		lines = append(lines, b.String())
		open, cols = append([]cluster(nil), open[n:]...), cols-x
	}
	for it := graphemes.FromString(f.text); it.Next(); {
		value := it.Value()
		c := cluster{at: at}
		at += len(value)
		if value == "\n" {
			open = append(open, c) // where the cursor may stand
			end(len(open))
			continue
		}
		shown := visible(value)
		c.shown, c.width = clip(shown, w-1), min(width(shown), w-1)
		if cols > 0 && cols+c.width > w-1 {
			if value == " " {
				open = append(open, cluster{at: c.at})
				end(len(open))
				continue
			}
			n := len(open)
			for n > 0 && open[n-1].shown != " " {
				n--
			}
			if n == 0 { // one long word
				n = len(open)
			}
			end(n)
		}
		open = append(open, c)
		cols += c.width
	}
	open = append(open, cluster{at: at})
	end(len(open))
	return lines, row, col
}
