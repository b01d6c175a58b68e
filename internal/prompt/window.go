package prompt

import "fmt"

// pages is how far a card is turned over that is higher than its terminal. Page
// Down goes through the text, then through the options where those have no room
// either; Page Up goes the same way back. A page shares a line with the next, so
// that none is skipped. The view says how much room there is, and holds the
// positions within it.
type pages struct {
	text, rows int  // the first line that is shown; above it, where there is room, stands how many are not
	turned     bool // the rows are at their page, not at the highlighted one
	reading    bool // the last key was a page key: the text has room before the hint

	textRoom, textMax int // of the last view: lines there were room for, and how far it can be turned
	rowsRoom, rowsMax int
	away              bool // the highlighted row is not on the page
}

// step is how many lines a page of k lines goes on. Of three lines and more the
// outermost say how much there is beyond them.
func step(k int) int {
	if k >= 3 {
		k -= 2
	}
	return max(k-1, 1)
}

func (p *pages) down() {
	begun := p.reading
	p.reading = true
	switch {
	case p.textRoom == 0 && !begun: // now there will be
	case p.text < p.textMax:
		p.text = min(p.text+step(p.textRoom), p.textMax)
	case !p.turned && p.rowsMax > 0:
		p.turned, p.rows = true, 0
	case p.turned:
		p.rows = min(p.rows+step(p.rowsRoom), p.rowsMax)
	}
}

func (p *pages) up() {
	p.reading = true
	switch {
	case p.turned && p.rows > 0:
		p.rows = max(p.rows-step(p.rowsRoom), 0)
	case p.turned:
		p.turned = false
	default:
		p.text = max(p.text-step(p.textRoom), 0)
	}
}

// leave goes back to the highlighted row, and tells whether it was away.
func (p *pages) leave() (away bool) {
	away = p.away
	p.turned, p.reading, p.away = false, false, false
	return away
}

// unmarked tells whether text is hidden and no line says so.
func (p *pages) unmarked() bool { return p.textMax > 0 && p.textRoom < 3 }

// ofText is the k lines of the text that are turned to.
func (p *pages) ofText(text []line, k int) []line {
	k = max(k, 0)
	p.textRoom, p.textMax = k, lastPage(len(text), k)
	p.text = min(p.text, p.textMax)
	return turnedTo(text, p.text, k)
}

// ofRows is the k lines of the rows that are turned to, or those with the highlighted one.
func (p *pages) ofRows(sec section, k int) section {
	k = max(k, 1)
	p.rowsRoom, p.rowsMax = k, lastPage(len(sec.lines), k)
	p.rows, p.away = min(p.rows, p.rowsMax), false
	if !p.turned {
		return sec.window(k)
	}
	top, to := topOf(p.rows, k), topOf(p.rows, k)+k
	if k >= 3 && p.rows < p.rowsMax {
		to--
	}
	p.away = sec.end <= p.rows || sec.need >= to
	sec.cursor = sec.cursor && sec.row >= p.rows && sec.row < to
	sec.lines, sec.row = turnedTo(sec.lines, p.rows, k), sec.row-top
	return sec
}

// lastPage is the first line shown of the last of n lines that k have room for.
func lastPage(n, k int) int {
	switch {
	case n <= k:
		return 0
	case k >= 3:
		return n - k + 1
	}
	return n - k
}

// topOf is the line in whose place a page begins.
func topOf(first, k int) int {
	if k >= 3 {
		return max(first-1, 0)
	}
	return first
}

// turnedTo is k lines from the first that is to be shown. Where there is room for it, they
// say how much there is above and below.
func turnedTo(all []line, first, k int) []line {
	if len(all) <= k {
		return all
	}
	top := topOf(first, k)
	out := append([]line(nil), all[top:top+k]...)
	if k < 3 {
		return out
	}
	if first > 0 {
		out[0] = more(first, "above (PgUp)")
	}
	if below := len(all) - top - k; below > 0 {
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
