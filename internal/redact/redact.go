// Package redact keeps the API key out of everything that is kept or shown: it
// replaces the key's exact value by a mark, in whole texts and in streams.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Mark stands where the key stood.
const Mark = "[key]"

// MinLength is the length in bytes below which a key is not replaced: a short
// one would turn up in ordinary text.
const MinLength = 8

// Key knows the forms of one key. The zero value replaces nothing. It is
// immutable and safe for concurrent use.
type Key struct {
	raw   string
	forms []form // the key as it is, as JSON writes it, and as JSON in JSON does; the longest first
}

// maxForms is how many there can be: three, each as it is and in two encodings.
const maxForms = 9

// New makes a Key. One that is ordinary, as one of fewer than MinLength bytes is,
// replaces nothing.
func New(key string) Key {
	k := Key{raw: key}
	if ordinary(key) {
		return k
	}
	// JSON stands in JSON too: a reply, and the arguments of a call, are texts of a message.
	for _, once := range []string{key, escaped(key, true), escaped(key, false)} {
		for _, text := range []string{once, escaped(once, true), escaped(once, false)} {
			if !slices.ContainsFunc(k.forms, func(have form) bool { return string(have.text) == text }) {
				k.forms = append(k.forms, newForm(text))
			}
		}
	}
	slices.SortFunc(k.forms, func(a, b form) int { return len(b.text) - len(a.text) })
	return k
}

// form is one spelling of the key.
type form struct {
	text []byte
	rare int // place of the byte that is looked for first
}

// common are the bytes of ordinary text and code, about as often as they stand
// there. A key begins with some of them, so that its beginning is met at every turn.
const common = ` etaoinsrlhdcumpfg"yb,w.v_/:k-()=\0123456789{}'x;`

func newForm(text string) form {
	f := form{text: []byte(text)}
	best := -1
	for i := range text {
		rank := strings.IndexByte(common, text[i])
		if rank < 0 {
			rank = len(common)
		}
		if rank > best {
			f.rare, best = i, rank
		}
	}
	return f
}

// index is bytes.Index, several times as fast where the form is not there.
func (f form) index(b []byte) int {
	for at := f.rare; at < len(b); at++ {
		next := bytes.IndexByte(b[at:], f.text[f.rare])
		if next < 0 {
			return -1
		}
		at += next
		if bytes.HasPrefix(b[at-f.rare:], f.text) {
			return at - f.rare
		}
	}
	return -1
}

// escaped is the inside of the JSON string that holds s.
func escaped(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(s); err != nil {
		return s // a string always encodes
	}
	return string(b.Bytes()[1 : b.Len()-2]) // without the quotes and the line end
}

// Replaces tells whether there is a key that is long enough to be replaced.
func (k Key) Replaces() bool { return len(k.forms) > 0 }

// In tells whether s gives the key away. A key that is not replaced is
// looked for as the whole of s only.
func (k Key) In(s string) bool {
	if k.raw == "" {
		return false
	}
	if !k.Replaces() {
		return s == k.raw
	}
	return slices.ContainsFunc(k.forms, func(f form) bool { return strings.Contains(s, string(f.text)) })
}

// String is s without the key.
func (k Key) String(s string) string {
	if !k.Replaces() || !k.In(s) {
		return s
	}
	return string(k.Bytes([]byte(s)))
}

// Bytes is b without the key: b itself where the key is not in it, else a new
// slice. b is never changed.
func (k Key) Bytes(b []byte) []byte {
	s := search{forms: k.forms, in: b}
	at, n := s.from(0)
	if at < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	done := 0
	for ; at >= 0; at, n = s.from(done) {
		out = append(out, b[done:at]...)
		out = append(out, Mark...)
		done = at + n
	}
	return append(out, b[done:]...)
}

// search looks for forms in a text from its beginning to its end. No part is
// searched twice for the same form, however often another is found.
type search struct {
	forms []form
	in    []byte
	next  [maxForms]int // behind the first byte of the form's next place, or of the text's end; 0: not searched yet
}

// from is the place and length of the first form at or behind start, of the
// longest one where several begin at the same place; at is -1 where there is
// none. start does not go back.
func (s *search) from(start int) (at, n int) {
	at = len(s.in)
	for i, form := range s.forms {
		if s.next[i] <= start {
			s.next[i] = len(s.in) + 1
			if place := form.index(s.in[start:]); place >= 0 {
				s.next[i] = start + place + 1
			}
		}
		if place := s.next[i] - 1; place < at {
			at, n = place, len(form.text)
		}
	}
	if n == 0 {
		return -1, 0
	}
	return at, n
}

// partial is the first place from which b to its end could be the beginning of
// a form, and is not a whole one; -1 where there is none.
func (k Key) partial(b []byte) int {
	at := -1
	for _, form := range k.forms {
		for i := max(0, len(b)-len(form.text)+1); i < len(b) && (at < 0 || i < at); i++ {
			if bytes.HasPrefix(form.text, b[i:]) {
				at = i
				break
			}
		}
	}
	return at
}
