package view

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// flow breaks streamed text at words, so that the terminal does not break it
// within them. It adds line ends: without those what comes out is what went in.
//
//   - A word is held back until it has ended, since only then is it known whether
//     it fits; end lets it go. What is held is bounded by the width.
//   - Wide characters break on both sides, but closing marks stay with what they
//     close. What combines stays with what it combines with.
//   - Spaces at the end of a full line, which nobody would see, are left out.
//   - A word wider than the line begins a line and is left to the terminal, so
//     that an address can be copied whole.
//   - Within a code fence nothing is broken.
//   - What goes on of a list's item, or of an indented line, begins where the
//     item's text began, where that leaves half of the line.
//
// A piece costs what its length costs, whatever came before, and no memory once
// the buffers have grown. The screen's mutex guards it.
type flow struct {
	columns func() int

	limit  int    // of this line; 0 = the next character begins one
	col    int    // columns written on this line
	held   []byte // of the word that has not ended, and the spaces before it
	space  int    // bytes of held that are spaces
	lead   int    // columns of them
	wide   int    // columns of the word
	long   bool   // the word is wider than a line and goes out as it comes
	glue   bool   // the next character belongs to the one before
	before rune
	fence  fence

	words int  // released of this line of the text
	item  bool // the first of them marks an item of a list
	hang  int  // columns before what goes on of the line
}

// text appends a piece to dst, as far as it can be shown.
func (f *flow) text(dst []byte, piece string) []byte {
	for i := 0; i < len(piece); {
		r, n := rune(piece[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(piece[i:])
		}
		dst = f.rune(dst, r, piece[i:i+n])
		i += n
	}
	return dst
}

// end appends what is held back. A line end is to follow, or nothing.
func (f *flow) end(dst []byte) []byte { return f.release(dst, true) }

// within tells whether the cursor stands, or will stand, within a line.
func (f *flow) within() bool { return f.col > 0 || len(f.held) > 0 }

// restart forgets the text: another one begins, on a new line.
func (f *flow) restart() { *f = flow{columns: f.columns, held: f.held[:0]} }

func (f *flow) rune(dst []byte, r rune, raw string) []byte {
	if f.limit == 0 {
		f.limit = max(f.columns()-1, 1) // one less: terminals differ on what some characters take
	}
	switch r {
	case '\n':
		dst = append(f.release(dst, true), '\n')
		f.fence.line()
		f.col, f.limit = 0, 0
		f.words, f.item, f.hang = 0, false, 0
		return dst
	case ' ', '\t':
		if len(f.held) > f.space || f.long {
			dst = f.release(dst, false)
		}
		if r == '\t' {
			f.lead += 8 - (f.col+f.lead)%8
		} else {
			f.lead++
		}
		f.held = append(f.held, raw...)
		f.space = len(f.held)
		if len(f.held) > f.most() {
			dst = f.release(dst, false)
		}
		return dst
	}
	w := runewidth.RuneWidth(r)
	if w > 0 && !f.glue && (f.wide > 0 || f.long) && breaks(f.before, r, w) {
		dst = f.release(dst, false)
	}
	f.glue, f.before = r == '\u200d', r
	if f.long {
		f.advance(w)
		return append(dst, raw...)
	}
	f.held = append(f.held, raw...)
	f.wide += w
	if f.wide > f.limit || len(f.held) > f.most() {
		dst = f.release(dst, false)
		f.long = true
	}
	return dst
}

// most is how many bytes are held at most: combining marks take no columns.
func (f *flow) most() int { return 8*f.limit + 64 }

// release appends what is held, its word on a new line if it does not fit on
// this one. Spaces that no column is left for are dropped at the end of a line:
// they would begin the next.
func (f *flow) release(dst []byte, last bool) []byte {
	f.long = false
	if len(f.held) == 0 {
		return dst
	}
	spaces, word := f.held[:f.space], f.held[f.space:]
	code := f.fence.word(word)
	hang := f.hanging(word)
	broken := f.col > 0 && len(word) > 0 && f.col+f.lead+f.wide > f.limit && !code
	if hang+f.wide > f.limit {
		if f.wide > f.limit && f.col+f.lead <= hang { // behind the mark of its item it has as little room as anywhere
			broken = false
		}
		hang = 0
	}
	if over := f.col + f.lead - f.limit - 1; over > 0 && (broken || last && len(word) == 0) {
		spaces = spaces[:max(len(spaces)-over, 0)]
	}
	dst = append(dst, spaces...)
	if broken {
		dst = append(dst, '\n')
		for range hang {
			dst = append(dst, ' ')
		}
		f.col, f.lead = hang, 0
	}
	dst = append(dst, word...)
	f.advance(f.lead + f.wide)
	f.held, f.space, f.lead, f.wide = f.held[:0], 0, 0, 0
	return dst
}

// hanging is told of each word, and says how far what goes on of the line is indented.
func (f *flow) hanging(word []byte) int {
	if len(word) == 0 {
		return f.hang
	}
	f.words++
	switch {
	case f.words == 1:
		f.hang, f.item = f.col+f.lead, marksItem(word)
	case f.words == 2 && f.item && f.lead > 0:
		f.hang = f.col + f.lead
	}
	if f.hang > f.limit/2 {
		f.hang = 0
	}
	return f.hang
}

// marksItem tells whether a word marks an item of a list: - * + • 12. 12)
func marksItem(word []byte) bool {
	n := 0
	for n < len(word) && n < 3 && word[n] >= '0' && word[n] <= '9' {
		n++
	}
	if n > 0 {
		return n+1 == len(word) && (word[n] == '.' || word[n] == ')')
	}
	return len(word) == 1 && (word[0] == '-' || word[0] == '*' || word[0] == '+') || string(word) == "•"
}

// advance moves the cursor; at the end of a line the terminal goes on on the
// next one by itself.
func (f *flow) advance(columns int) {
	f.col += columns
	if all := f.limit + 1; f.col > all {
		f.col = (f.col-1)%all + 1
	}
}

// breaks tells whether a line may end between two characters of one word.
func breaks(before, r rune, w int) bool {
	if w < 2 && runewidth.RuneWidth(before) < 2 {
		return false
	}
	return !slices.Contains(closing, r) && !slices.Contains(opening, before)
}

// Marks that do not begin a line, and such that do not end one.
var (
	closing = []rune("。、，．・：；？！）］｝〉》」』】〕’”…ー々,.:;?!)]}'\"")
	opening = []rune("（［｛〈《「『【〔‘“([{'\"")
)

// fence follows the code fences of Markdown: lines that begin with three or more
// backquotes or tildes.
type fence struct {
	open   int  // length of the mark that opened it; 0 = outside
	mark   byte // of what
	begun  bool // the line has a word
	ending bool // the line is one that closes, if nothing follows
}

// word is told of each word of a line, and tells whether it is code.
func (f *fence) word(word []byte) bool {
	if len(word) == 0 {
		return f.open > 0
	}
	first := !f.begun
	f.begun = true
	if !first {
		f.ending = false
		return f.open > 0
	}
	n := 0
	for n < len(word) && word[n] == word[0] {
		n++
	}
	if word[0] != '`' && word[0] != '~' || n < 3 || word[0] == '`' && bytes.IndexByte(word[n:], '`') >= 0 {
		return f.open > 0
	}
	switch {
	case f.open == 0:
		f.open, f.mark = n, word[0]
	case word[0] == f.mark && n >= f.open && n == len(word):
		f.ending = true
	}
	return true
}

// line says that a line has ended.
func (f *fence) line() {
	if f.ending {
		f.open = 0
	}
	f.begun, f.ending = false, false
}
