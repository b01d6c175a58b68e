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
	forms [][]byte // the key as it is and as JSON writes it, the longest first
}

// New makes a Key. One of fewer than MinLength bytes replaces nothing.
func New(key string) Key {
	k := Key{raw: key}
	if len(key) < MinLength {
		return k
	}
	for _, form := range []string{key, escaped(key, true), escaped(key, false)} {
		if !slices.ContainsFunc(k.forms, func(have []byte) bool { return string(have) == form }) {
			k.forms = append(k.forms, []byte(form))
		}
	}
	slices.SortFunc(k.forms, func(a, b []byte) int { return len(b) - len(a) })
	return k
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

// In tells whether s gives the key away. A key too short to be replaced is
// looked for as the whole of s only.
func (k Key) In(s string) bool {
	if k.raw == "" {
		return false
	}
	if !k.Replaces() {
		return s == k.raw
	}
	return slices.ContainsFunc(k.forms, func(f []byte) bool { return strings.Contains(s, string(f)) })
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
	at, n := k.find(b)
	if at < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for ; at >= 0; at, n = k.find(b) {
		out = append(out, b[:at]...)
		out = append(out, Mark...)
		b = b[at+n:]
	}
	return append(out, b...)
}

// find is the place and length of the first form in b, of the longest one where
// several begin at the same place; at is -1 where there is none.
func (k Key) find(b []byte) (at, n int) {
	at = -1
	for _, form := range k.forms {
		if i := bytes.Index(b, form); i >= 0 && (at < 0 || i < at) {
			at, n = i, len(form)
		}
	}
	return at, n
}

// partial is the first place from which b to its end could be the beginning of
// a form, and is not a whole one; -1 where there is none.
func (k Key) partial(b []byte) int {
	at := -1
	for _, form := range k.forms {
		for i := max(0, len(b)-len(form)+1); i < len(b) && (at < 0 || i < at); i++ {
			if bytes.HasPrefix(form, b[i:]) {
				at = i
				break
			}
		}
	}
	return at
}
