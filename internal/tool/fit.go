package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"deepseek/internal/session"
)

// MaxContent is how many bytes of a result a model is sent, unless its tool has
// another Limit.
const MaxContent = 50_000

// Fit makes a result fit to be sent: bytes that are no UTF-8 become printable,
// and what is longer than MaxContent is cut in the middle, with the whole in a
// spill file named in the text and in the meta. hint names that file. A tool
// that kept the whole itself has said so in its meta and text; then nothing is
// kept twice. Spill may be nil: then the rest is gone, and the text says so.
func Fit(r Result, spill Spill, hint string) Result {
	r.Content = Printable(r.Content)
	limit := max(MaxContent, r.Limit)
	if len(r.Content) <= limit {
		return r
	}
	whole := r.Content
	if r.Meta != nil && r.Meta.Spill != "" {
		r.Content = cutMiddle(whole, limit, "the whole is in the file named in this result")
		return r
	}
	path, name, err := keep(whole, spill, hint)
	switch {
	case err != nil:
		r.Content = cutMiddle(whole, limit, "the whole could not be kept: "+err.Error())
	case path == "":
		r.Content = cutMiddle(whole, limit, "the whole was not kept")
	default:
		r.Content = cutMiddle(whole, limit, "the whole is in "+path)
		meta := session.ToolMeta{}
		if r.Meta != nil {
			meta = *r.Meta
		}
		meta.Spill = name
		r.Meta = &meta
	}
	return r
}

func keep(content string, spill Spill, hint string) (path, name string, err error) {
	if spill == nil {
		return "", "", nil
	}
	f, err := spill.Create(hint)
	if err != nil {
		return "", "", err
	}
	_, err = f.Write([]byte(content))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return f.Path(), f.Name(), err
}

// cutMiddle keeps the head and the tail, whole runes only, with a line between
// them that says how much is left out. The result has at most limit bytes as
// long as the note leaves room.
func cutMiddle(s string, limit int, note string) string {
	mark := func(n int) string { return fmt.Sprintf("\n\n… %d bytes left out here, %s …\n\n", n, note) }
	room := max(0, limit-len(mark(len(s))))
	head, tail := room/2, len(s)-(room-room/2)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + mark(tail-head) + s[tail:]
}

// Printable writes bytes that are no UTF-8 as \xNN and NUL as \x00. All else stays.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02X`, s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
