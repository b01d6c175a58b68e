package session

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// appendString appends s as a JSON string, byte for byte as Marshal writes it,
// but with no copy of it in between: an answer may have megabytes.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[done:i]...)
			if at := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), c); at >= 0 {
				dst = append(dst, '\\', `"\bfnrt`[at])
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			done = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[done:i]...)
			dst = strconv.AppendInt(append(dst, '\\', 'u'), int64(r), 16)
			done = i + n
		}
		i += n
	}
	return append(append(dst, s[done:]...), '"')
}
