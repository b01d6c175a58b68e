package tool

import (
	"fmt"
	"strings"
	"unicode"
)

// Tilde is what is wrong with a path that begins with "~" and leads to nothing.
func Tilde(path string) string {
	return fmt.Sprintf("~ does not stand for a home here; give the whole path, or ./%s for a file of that name", Brief(path))
}

// Name is a file's name, or path, on one line: what is no UTF-8, and characters that
// begin a line or steer a terminal, are written as \xNN. A file's name must not
// look like a line of the answer that it stands in.
func Name(path string) string {
	path = Printable(path)
	steers := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if !strings.ContainsFunc(path, steers) {
		return path
	}
	var b strings.Builder
	for _, r := range path {
		if !steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, `\x%02X`, c)
		}
	}
	return b.String()
}
