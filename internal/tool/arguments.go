package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// wellFormed says what keeps raw from being one JSON object whose strings hold
// exactly what was meant, nil if nothing does. Decoders replace bad UTF-8 and
// half surrogate pairs silently; in a file's content that would be damage.
func wellFormed(raw string) []string {
	var value json.RawMessage
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return []string{"the arguments are not JSON: " + err.Error()}
		}
		at := int(syntax.Offset)
		if at > 0 && !strings.HasPrefix(syntax.Error(), "unexpected end") {
			at-- // Offset counts the offending byte as read
		}
		return []string{fmt.Sprintf("the arguments are not JSON: %s at byte %d%s", syntax.Error(), at, around(raw, at))}
	}
	if text := strings.TrimLeft(raw, " \t\r\n"); text[0] != '{' {
		return []string{fmt.Sprintf("the arguments must be one JSON object, got %s", kindOf(text))}
	}
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRuneInString(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return []string{fmt.Sprintf("the arguments are not UTF-8: byte 0x%02X at byte %d", raw[i], i)}
		}
		i += size
	}
	if at := loneSurrogate(raw); at >= 0 {
		return []string{fmt.Sprintf("%s at byte %d is half of a surrogate pair: write the character itself or both halves", raw[at:at+6], at)}
	}
	return nil
}

// around shows the text before a place that is wrong.
func around(raw string, at int) string {
	if at <= 0 || at > len(raw) {
		return ""
	}
	from := max(0, at-30)
	return ", after " + strconv.Quote(raw[from:at])
}

func kindOf(text string) string {
	switch text[0] {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// loneSurrogate finds a \uD800–\uDFFF escape without its other half in valid JSON, -1 if there is none.
func loneSurrogate(raw string) int {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		r, ok := escaped(raw, i)
		if !ok {
			i++ // another escape of two bytes; \u of other runes has no backslash in it
			continue
		}
		next, ok := escaped(raw, i+6)
		if !ok || utf16.DecodeRune(r, next) == utf8.RuneError {
			return i
		}
		i += 11
	}
	return -1
}

// escaped reads a surrogate escape at i.
func escaped(raw string, i int) (rune, bool) {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(raw[i+2:i+6], 16, 32)
	if err != nil || !utf16.IsSurrogate(rune(n)) {
		return 0, false
	}
	return rune(n), true
}
