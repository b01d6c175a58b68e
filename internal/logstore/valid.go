package logstore

import "encoding/json"

// valid is json.Valid, several times as fast: a resume checks the whole log.
func valid(b []byte) bool { return skipValue(b, 0) == len(b) || json.Valid(b) }

// maxDepth is how deep skipValue looks into a value.
const maxDepth = 500

// skipValue is the length of the JSON value at the start of b, or -1 if there
// is none that it is sure of: whatever it takes, encoding/json takes. The
// reverse does not hold (space around the value, values nested too deep), so
// its callers ask encoding/json about the rest.
func skipValue(b []byte, depth int) int {
	if len(b) == 0 || depth > maxDepth {
		return -1
	}
	switch b[0] {
	case '{':
		return skipMembers(b, depth, '}', true)
	case '[':
		return skipMembers(b, depth, ']', false)
	case '"':
		return skipString(b)
	case 't':
		return skipWord(b, "true")
	case 'f':
		return skipWord(b, "false")
	case 'n':
		return skipWord(b, "null")
	}
	return skipNumber(b)
}

func skipMembers(b []byte, depth int, end byte, keyed bool) int {
	i := skipSpace(b, 1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for i < len(b) {
		if keyed {
			n := -1
			if b[i] == '"' {
				n = skipString(b[i:])
			}
			if n < 0 {
				return -1
			}
			if i = skipSpace(b, i+n); i >= len(b) || b[i] != ':' {
				return -1
			}
			i = skipSpace(b, i+1)
		}
		n := skipValue(b[i:], depth+1)
		if n < 0 {
			return -1
		}
		if i = skipSpace(b, i+n); i >= len(b) {
			return -1
		}
		switch b[i] {
		case end:
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
	return -1
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

func skipWord(b []byte, word string) int {
	if len(b) < len(word) || string(b[:len(word)]) != word {
		return -1
	}
	return len(word)
}

// special marks the bytes that a string is not made of: its end, escapes,
// control characters.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

func skipString(b []byte) int {
	for i := 1; i < len(b); i++ {
		if !special[b[i]] {
			continue
		}
		switch {
		case b[i] == '"':
			return i + 1
		case b[i] != '\\' || i+1 >= len(b):
			return -1
		}
		i++
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			for n := range 4 {
				if i+1+n >= len(b) || !hexDigit(b[i+1+n]) {
					return -1
				}
			}
			i += 4
		default:
			return -1
		}
	}
	return -1
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func skipNumber(b []byte) int {
	i := 0
	if b[0] == '-' {
		i = 1
	}
	first := i
	if i = skipDigits(b, i); i == first || i > first+1 && b[first] == '0' {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		first = i + 1
		if i = skipDigits(b, first); i == first {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		first = i
		if i = skipDigits(b, first); i == first {
			return -1
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
