package files

import (
	"slices"
	"strings"
)

// span is a part of a text, in bytes.
type span struct{ start, end int }

// match is where old stands in a text, and how to put new there.
type match struct {
	text  string
	spans []span // of what matched, may overlap
	repl  func(span) (span, string)
}

// find looks for old, literally. In a text with CRLF line ends a \n of old
// matches either line end, and the \n of what replaces it takes the line end
// of its surroundings; line ends that old and new have in common stay as they are.
// A \r\r\n of what replaces it is no line end that anybody writes by habit: it stays
// to the byte.
func find(text, old, replacement string) match {
	if !strings.Contains(text, "\r\n") {
		return match{text, occurrences(text, old), func(s span) (span, string) { return s, replacement }}
	}
	oldLF, newLF := toLF(old), toLFButDouble(replacement)
	head := commonPrefix(oldLF, newLF)
	tail := commonSuffix(oldLF[head:], newLF[head:])
	if at := len(newLF) - tail; tail > 0 && at > 0 && newLF[at] == '\n' && newLF[at-1] == '\r' {
		tail-- // what is kept must not begin in the middle of it
	}
	lf, removed := withoutCR(text)
	back := func(at int) int { // from a place in lf to the one in text
		n, _ := slices.BinarySearch(removed, at)
		return at + n
	}
	m := match{text: text}
	places := map[span]int{} // where in lf a span begins
	for _, s := range occurrences(lf, oldLF) {
		raw := span{back(s.start), back(s.end)}
		places[raw] = s.start
		m.spans = append(m.spans, raw)
	}
	if strings.Contains(old, "\r\n") {
		// The line ends were meant: where they fit exactly, only those count.
		exact := slices.DeleteFunc(slices.Clone(m.spans), func(s span) bool { return text[s.start:s.end] != old })
		if len(exact) > 0 {
			m.spans = exact
		}
	}
	m.repl = func(raw span) (span, string) {
		at := places[raw]
		inner := span{back(at + head), back(at + len(oldLF) - tail)}
		return inner, withLineEnds(newLF, head, len(newLF)-tail, lineEnd(text, inner))
	}
	return m
}

// apply replaces the spans, which must not overlap.
func (m match) apply(spans []span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		inner, repl := m.repl(s)
		b.WriteString(m.text[at:inner.start])
		b.WriteString(repl)
		at = inner.end
	}
	b.WriteString(m.text[at:])
	return b.String()
}

// apart drops the spans that overlap the one before.
func apart(spans []span) []span {
	var out []span
	for _, s := range spans {
		if len(out) == 0 || s.start >= out[len(out)-1].end {
			out = append(out, s)
		}
	}
	return out
}

// maxSpans bounds what one edit replaces.
const maxSpans = 100_000

// occurrences finds every place where old begins, overlapping ones too, and
// stops one past maxSpans.
func occurrences(text, old string) []span {
	var out []span
	for from := 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 || len(out) > maxSpans {
			return out
		}
		out = append(out, span{from + i, from + i + len(old)})
		from += i + 1
	}
}

// lineEnd is the line end that belongs at a place: that of the lines within,
// else of the line around it, else of the line before.
func lineEnd(text string, s span) string {
	if within := text[s.start:s.end]; strings.Contains(within, "\n") {
		crlf := strings.Count(within, "\r\n")
		if crlf >= strings.Count(within, "\n")-crlf {
			return "\r\n"
		}
		return "\n"
	}
	at := strings.IndexByte(text[s.end:], '\n')
	if at >= 0 {
		at += s.end
	} else {
		at = strings.LastIndexByte(text[:s.start], '\n')
	}
	if at > 0 && text[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// withLineEnds is a part of s with another line end in the place of each \n, but
// for those after a \r.
func withLineEnds(s string, from, to int, end string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if s[i] == '\n' && (i == 0 || s[i-1] != '\r') {
			b.WriteString(end)
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// toLFButDouble is toLF that leaves a \r\r\n alone.
func toLFButDouble(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' && (i == 0 || s[i-1] != '\r') {
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// withoutCR is toLF with the places, in what it returns, of the \n that had a \r before them.
func withoutCR(s string) (lf string, removed []int) {
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.Index(s, "\r\n")
		if i < 0 {
			b.WriteString(s)
			return b.String(), removed
		}
		b.WriteString(s[:i])
		removed = append(removed, b.Len())
		b.WriteByte('\n')
		s = s[i+2:]
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
