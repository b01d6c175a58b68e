package deepseek

import "strings"

// scanner walks over JSON text. Its methods report false where the text is not
// what they are for; the walk is then over.
type scanner struct {
	s       string
	i       int
	choices int
}

// object calls member with each key; member must consume the value.
func (s *scanner) object(known []string, member func(key string) bool) bool {
	if !s.one('{') {
		return false
	}
	if s.one('}') {
		return true
	}
	var seen uint
	for {
		key, plain, ok := s.str()
		if !ok || !plain || !s.one(':') {
			return false
		}
		for k, name := range known {
			if len(name) != len(key) || !strings.EqualFold(name, key) {
				continue
			}
			if name != key || seen&(1<<k) != 0 {
				return false
			}
			seen |= 1 << k
		}
		if !member(key) {
			return false
		}
		if !s.one(',') {
			return s.one('}')
		}
	}
}

func (s *scanner) space() {
	for s.i < len(s.s) {
		switch s.s[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// one consumes the byte c, and white space in front of it, if it is there.
func (s *scanner) one(c byte) bool {
	s.space()
	if s.i < len(s.s) && s.s[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) literal(word string) bool {
	s.space()
	if strings.HasPrefix(s.s[s.i:], word) {
		s.i += len(word)
		return true
	}
	return false
}

func (s *scanner) null() bool { return s.literal("null") }

// str consumes a string and returns what stands between its quotes. It is
// plain if it is ASCII without an escape.
func (s *scanner) str() (raw string, plain, ok bool) {
	if !s.one('"') {
		return "", false, false
	}
	start, plain := s.i, true
	for s.i < len(s.s) {
		switch c := s.s[s.i]; {
		case c == '"':
			raw = s.s[start:s.i]
			s.i++
			return raw, plain, true
		case c < ' ':
			return "", false, false
		case c == '\\':
			plain = false
			s.i++
		case c >= 0x80:
			plain = false
		}
		s.i++
	}
	return "", false, false
}

// text consumes null or a string.
func (s *scanner) text(to *string) bool {
	if s.null() {
		return true
	}
	raw, plain, ok := s.str()
	if !ok {
		return false
	}
	if !plain {
		raw, ok = unquote(raw)
	}
	*to = raw
	return ok
}

// word consumes null or a plain string.
func (s *scanner) word(to *string) bool {
	if s.null() {
		return true
	}
	raw, plain, ok := s.str()
	*to = raw
	return ok && plain
}

// small consumes a whole number of at most nine digits.
func (s *scanner) small() (n int, ok bool) {
	start := s.i
	if !s.number() {
		return 0, false
	}
	digits := strings.TrimLeft(s.s[start:s.i], " \t\r\n")
	if len(digits) > 9 {
		return 0, false
	}
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}

// scalar consumes a value that is of no interest and is neither object nor array.
func (s *scanner) scalar() bool {
	s.space()
	if s.i == len(s.s) {
		return false
	}
	switch s.s[s.i] {
	case '"':
		_, plain, ok := s.str()
		return ok && plain
	case 'n':
		return s.literal("null")
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	}
	return s.number()
}

func (s *scanner) number() bool {
	s.space()
	s.at('-')
	switch {
	case s.at('0'):
	case s.digits():
	default:
		return false
	}
	if s.at('.') && !s.digits() {
		return false
	}
	if s.at('e') || s.at('E') {
		if !s.at('+') {
			s.at('-')
		}
		return s.digits()
	}
	return true
}

// at is one without white space.
func (s *scanner) at(c byte) bool {
	if s.i < len(s.s) && s.s[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.s) && s.s[s.i] >= '0' && s.s[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}
