package deepseek

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// isPage tells whether text is HTML.
func isPage(text string) bool {
	head := strings.ToLower(strings.TrimSpace(text[:min(len(text), 256)]))
	return strings.HasPrefix(head, "<!doctype") || strings.HasPrefix(head, "<html") || strings.HasPrefix(head, "<?xml") || strings.HasPrefix(head, "<head")
}

// pageTitle is what a page says about itself.
func pageTitle(page string) string {
	lower := strings.ToLower(page)
	start := strings.Index(lower, "<title>")
	if start < 0 || len(lower) != len(page) {
		return "a web page instead of an answer"
	}
	title, _, ok := strings.Cut(page[start+len("<title>"):], "</")
	if !ok || strings.TrimSpace(title) == "" {
		return "a web page instead of an answer"
	}
	return "a web page instead of an answer: " + strings.TrimSpace(title)
}

// retryAfter reads the header: seconds or an HTTP date.
func retryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case !(s > 0): // also not a number
			return 0
		case s > maxRetryAfter.Seconds():
			return maxRetryAfter
		}
		return time.Duration(s * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}

const maxRetryAfter = 365 * 24 * time.Hour // anything longer says the same

// asWords is text, or what there is to say about bytes that are none. A tenth of
// them may be odd: old servers write letters in other encodings.
func asWords(text string) string {
	odd := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && !strings.ContainsRune("\t\n\r\x1b", r) {
			odd++
		}
		i += n
	}
	if odd*10 <= len(text) {
		return text
	}
	return fmt.Sprintf("%d bytes that are no text", len(text))
}

// maxMessage bounds a server's message, in runes.
const maxMessage = 500

// clean makes a server's words fit to be shown and logged: without the key, on
// one line, control characters visible, of bounded length.
func (a *Adapter) clean(s string) string {
	if key := a.cfg.Key; key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	var b strings.Builder
	n, blank := 0, true
	for _, r := range s {
		switch {
		case r == ' ' || r == '\n' || r == '\r' || r == '\t':
			if blank {
				continue
			}
			blank = true
			b.WriteByte(' ')
		case r < ' ' || r >= 0x7F && r < 0xA0 || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			blank = false
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			blank = false
			b.WriteRune(r)
		}
		if n++; n == maxMessage {
			b.WriteString("…")
			break
		}
	}
	return strings.TrimSpace(b.String())
}
