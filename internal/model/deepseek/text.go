package deepseek

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote decodes what stands between the quotes of a JSON string. It reports
// false for anything that JSON does not allow there. Bytes that are no UTF-8
// are kept, and half of a surrogate pair becomes the three bytes that UTF-8
// would give it: the other half may be in the next fragment. Only a joiner
// turns the result into text.
func unquote(s string) (string, bool) {
	i := 0
	for i < len(s) && s[i] != '\\' && s[i] >= ' ' && s[i] != '"' {
		i++
	}
	if i == len(s) {
		return s, true
	}
	out := make([]byte, i, len(s))
	copy(out, s)
	for i < len(s) {
		c := s[i]
		i++
		if c < ' ' || c == '"' {
			return "", false
		}
		if c != '\\' {
			out = append(out, c)
			continue
		}
		if i == len(s) {
			return "", false
		}
		c = s[i]
		i++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(s[i:])
			if !ok {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i:], `\u`) {
				if low, ok := hex4(s[i+2:]); ok {
					if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
						r = pair
						i += 6
					}
				}
			}
			out = appendRune(out, r)
		default:
			return "", false
		}
	}
	return string(out), true
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendRune is utf8.AppendRune that also writes surrogates.
func appendRune(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}

// joiner makes valid UTF-8 of fragments that may end anywhere: it holds back
// an unfinished rune, or a high surrogate, until the next fragment. What cannot
// be completed becomes U+FFFD. The zero value is ready.
type joiner struct {
	held string
}

// add returns the text that is settled with this fragment.
func (j *joiner) add(fragment string) string {
	if j.held == "" && utf8.ValidString(fragment) {
		return fragment
	}
	s := j.held + fragment
	j.held = ""
	var out strings.Builder
	for len(s) > 0 {
		if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n == 3 {
			out.WriteString(s[:n])
			s = s[n:]
			continue
		}
		if unfinished(s) {
			j.held = s
			break
		}
		r, n := surrogate(s)
		if n == 3 && r < 0xDC00 {
			if low, m := surrogate(s[3:]); m == 3 && low >= 0xDC00 {
				r, n = utf16.DecodeRune(r, low), 6
			}
		}
		if utf16.IsSurrogate(r) {
			r = utf8.RuneError
		}
		out.WriteRune(r)
		s = s[n:]
	}
	return out.String()
}

// end returns the replacement of what was still held back.
func (j *joiner) end() string {
	if j.held == "" {
		return ""
	}
	j.held = ""
	return string(utf8.RuneError)
}

// surrogate reads one in its three-byte form, or one byte that is no UTF-8.
func surrogate(s string) (rune, int) {
	if len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return utf8.RuneError, 1
}

// unfinished tells whether s, which does not begin with a whole rune, may be
// the beginning of one.
func unfinished(s string) bool {
	if r, n := surrogate(s); n == 3 {
		rest := s[3:]
		return r < 0xDC00 && (rest == "" || rest == "\xED" || len(rest) == 2 && rest[0] == 0xED && rest[1] >= 0xB0 && rest[1] <= 0xBF)
	}
	if len(s) == 2 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF {
		return true
	}
	return !utf8.FullRuneInString(s)
}
