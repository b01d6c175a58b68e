package prompt

import "fmt"

// scrolled shows k lines of the text from where it is scrolled to, and says how much there is
// above and below. It also holds the scroll position within the text.
func (s *cardState) scrolled(text []line, k int) []line {
	k = max(k, 0)
	if len(text) <= k {
		s.scroll = 0
		return text
	}
	s.scroll = max(min(s.scroll, len(text)-k), 0)
	out := append([]line(nil), text[s.scroll:s.scroll+k]...)
	if k < 3 {
		return out
	}
	if s.scroll > 0 {
		out[0] = more(s.scroll+1, "above (PgUp)")
	}
	if below := len(text) - s.scroll - k; below > 0 {
		out[k-1] = more(below+1, "below (PgDn)")
	}
	return out
}

func more(n int, where string) line {
	return line{styleFaint, fmt.Sprintf("… %d %s", n, where)}
}

// window is k lines of the section, with the highlighted row in it, or of a row higher than
// that the part with the cursor.
func (sec section) window(k int) section {
	k = max(k, 1)
	if len(sec.lines) <= k {
		return sec
	}
	from, to := sec.need, sec.end
	if to-from > k && sec.cursor {
		from, to = sec.row, sec.row+1
	}
	to = min(to, from+k)
	top := max(min(from-(k-(to-from))/2, len(sec.lines)-k), 0)
	out := append([]line(nil), sec.lines[top:top+k]...)
	if top > 0 && top < from {
		out[0] = more(top+1, "above")
	}
	if below := len(sec.lines) - top - k; below > 0 && top+k > to {
		out[k-1] = more(below+1, "below")
	}
	sec.lines, sec.row = out, sec.row-top
	sec.cursor = sec.cursor && sec.row >= 0 && sec.row < k
	return sec
}
