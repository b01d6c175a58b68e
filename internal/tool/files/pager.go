package files

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"deepseek/internal/tool"
)

var bom = []byte("\xEF\xBB\xBF")

// pager picks the lines of one call from a stream of any length in constant
// memory, and learns on the way what it can say about the whole.
type pager struct {
	first, limit int

	out   strings.Builder
	shown int  // lines in out
	done  bool // no more lines fit or are wanted

	total  int // lines begun so far
	crlf   int // line ends by kind
	lf     int
	last   byte // of the stream so far
	seen   bool // any byte
	hasBOM bool
	bad    bool   // not UTF-8
	rest   []byte // of a rune that a part cut in two

	line    []byte // the head of the line that is being read
	skipped int    // runes of it that are not kept
	open    bool   // a line has begun
}

func newPager(first, limit int) *pager { return &pager{first: first, limit: limit} }

// feed takes the next part of the stream.
func (p *pager) feed(part []byte) {
	if !p.seen {
		p.seen = true
		if bytes.HasPrefix(part, bom) {
			p.hasBOM = true
			part = part[len(bom):]
		}
	}
	if len(part) == 0 {
		return
	}
	p.validate(part)
	crlf := bytes.Count(part, []byte("\r\n"))
	if part[0] == '\n' && p.last == '\r' {
		crlf++
	}
	p.crlf += crlf
	p.lf += bytes.Count(part, []byte{'\n'}) - crlf
	for len(part) > 0 {
		if p.done {
			p.total += bytes.Count(part, []byte{'\n'})
			p.last = part[len(part)-1]
			p.open = p.last != '\n'
			return
		}
		end := bytes.IndexByte(part, '\n')
		text := part
		if end >= 0 {
			text = part[:end]
		}
		p.open = true
		if p.total+1 >= p.first {
			p.keep(text)
		}
		if len(text) > 0 {
			p.last = text[len(text)-1]
		}
		if end < 0 {
			return
		}
		p.flush(true)
		p.last = '\n'
		part = part[end+1:]
	}
}

// validate looks for bytes that are no UTF-8, across the borders of parts.
func (p *pager) validate(part []byte) {
	if p.bad {
		return
	}
	for len(p.rest) > 0 && len(part) > 0 && !utf8.FullRune(p.rest) {
		p.rest = append(p.rest, part[0])
		part = part[1:]
	}
	if len(p.rest) > 0 && utf8.FullRune(p.rest) {
		p.bad = !utf8.Valid(p.rest)
		p.rest = p.rest[:0]
	}
	cut := len(part)
	for back := 1; back < utf8.UTFMax && back <= len(part); back++ {
		if b := part[len(part)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(part[len(part)-back:]) {
				cut = len(part) - back
			}
			break
		}
	}
	p.bad = p.bad || !utf8.Valid(part[:cut])
	p.rest = append(p.rest, part[cut:]...)
}

// keep adds text to the line, up to what a line may show.
func (p *pager) keep(text []byte) {
	const most = (maxLineRunes + 2) * utf8.UTFMax
	n := min(len(text), max(0, most-len(p.line)))
	p.line = append(p.line, text[:n]...)
	for _, b := range text[n:] {
		if utf8.RuneStart(b) {
			p.skipped++
		}
	}
}

// flush ends a line. ended tells whether a line end was there.
func (p *pager) flush(ended bool) {
	p.total++
	p.open = false
	if p.done || p.total < p.first {
		return
	}
	line, skipped := p.line, p.skipped
	p.line, p.skipped = p.line[:0], 0
	if p.shown >= p.limit {
		p.done = true
		return
	}
	if ended && skipped == 0 {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	text := strconv.Itoa(p.total)
	text = strings.Repeat(" ", max(0, 6-len(text))) + text + "\t" + cutLine(line, skipped)
	const notes = 500
	if p.out.Len()+len(text) > maxBytes-notes {
		p.done = true
		return
	}
	if p.shown > 0 {
		p.out.WriteByte('\n')
	}
	p.out.WriteString(text)
	p.shown++
}

// cutLine is the line as shown, printable, at most maxLineRunes of it.
func cutLine(line []byte, skipped int) string {
	if skipped == 0 && utf8.RuneCount(line) <= maxLineRunes {
		return tool.Printable(string(line))
	}
	n := 0
	for range maxLineRunes {
		_, size := utf8.DecodeRune(line[n:])
		n += size
	}
	left := utf8.RuneCount(line[n:]) + skipped
	return tool.Printable(string(line[:n])) + fmt.Sprintf(" … (%d more characters in this line)", left)
}

// end says that the stream is over.
func (p *pager) end() {
	p.bad = p.bad || len(p.rest) > 0
	if p.open {
		p.flush(false)
	}
}

// text is the result. whole tells whether the stream was read to its end.
func (p *pager) text(name string, whole bool) string {
	if p.total == 0 && p.hasBOM {
		return "(" + name + " holds a byte order mark only)"
	}
	if p.total == 0 {
		return "(" + name + " is empty)"
	}
	var notes []string
	if next := p.first + p.shown; !whole {
		notes = append(notes, fmt.Sprintf("lines %d-%d; go on with offset=%d", p.first, next-1, next))
	} else if next <= p.total {
		notes = append(notes, fmt.Sprintf("lines %d-%d of %d; go on with offset=%d", p.first, next-1, p.total, next))
	}
	if p.hasBOM {
		notes = append(notes, "starts with a UTF-8 byte order mark")
	}
	switch {
	case p.crlf > 0 && p.lf > 0:
		notes = append(notes, fmt.Sprintf("mixed line ends: %d CRLF, %d LF", p.crlf, p.lf))
	case p.crlf > 0:
		notes = append(notes, "CRLF line ends")
	}
	if p.bad {
		notes = append(notes, `not UTF-8: such bytes are shown as \xNN, edit refuses this file`)
	}
	for _, n := range notes {
		p.out.WriteString("\n(" + n + ")")
	}
	return p.out.String()
}
