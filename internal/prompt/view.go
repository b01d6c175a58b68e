package prompt

import (
	"fmt"
	"strings"
	"time"

	"deepseek/internal/session"
)

// line is one row of the screen: visible text of at most the frame's width.
type line struct{ style, text string }

// frame is what a card looks like: lines from the top, and where the cursor stands.
type frame struct {
	lines    []line
	cursor   bool // shown, at row and col
	row, col int
}

// Styles, in survey's colour words.
const (
	stylePlain  = ""
	styleTitle  = "default+b"
	styleFocus  = "cyan+b"
	styleNext   = "cyan"
	styleFaint  = "black+h"
	styleNote   = "yellow"
	styleGood   = "green"
	styleAdded  = "green"
	styleRemove = "red"
)

// section is lines of which some must be seen: from need to end, and the cursor's.
type section struct {
	lines     []line
	need, end int
	cursor    bool
	row, col  int
}

// view lays the card out for a terminal of w columns and h rows. Nothing in the
// frame is wider than w-1, so that no terminal wraps, nor higher than h.
func (s *cardState) view(now time.Time, w, h int) frame {
	w = max(w, 4) - 1
	h = max(h, 3)
	if s.hidden {
		return frame{lines: []line{{styleFaint, s.status(now, w)}}}
	}
	title := line{styleTitle, s.title(now, w)}
	note := styled(styleNote, s.note, w)
	hint := joined(styleFaint, s.hint(), w)
	text, rows := s.textLines(w), s.rowLines(w)

	// What does not fit goes in this order: all but the keys that answer and that leave,
	// all but a line of the note, that too, and then text and rows are shown in part. How
	// to answer and how to leave is the last to go.
	least := 1 + rows.end - rows.need
	if s.keyed && len(hint) > 2 { // it has been read, and rows are worth more
		least = max(least, len(text)+len(rows.lines))
	}
	if h-1-len(note)-len(hint) < least {
		hint = []line{{styleFaint, s.brief(w)}}
	}
	least = 1 + rows.end - rows.need
	if len(note) > 1 && h-1-len(note)-len(hint) < least {
		note = []line{{styleNote, clip(oneLine(s.note), w)}}
	}
	if h-1-len(note)-len(hint) < 1 {
		note = nil
	}
	if s.pages.reading && h-1-len(note)-len(hint) < 2 { // else nothing of the text could be seen
		hint = nil
	}
	room := h - 1 - len(note) - len(hint)
	forRows := min(len(rows.lines), max(room/2, room-len(text), min(rows.end-rows.need, room-1), 1))
	text = s.pages.ofText(text, room-forRows)
	if len(hint) == 1 && s.pages.unmarked() && !s.sending {
		if with := hint[0].text + " · PgDn"; width(with) <= w {
			hint = []line{{styleFaint, with}}
		}
	}
	rows = s.pages.ofRows(rows, forRows)

	f := frame{lines: append([]line{title}, text...)}
	if rows.cursor && !s.sending {
		f.cursor, f.row, f.col = true, len(f.lines)+rows.row, rows.col
	}
	f.lines = append(append(append(f.lines, rows.lines...), note...), hint...)
	for i := range f.lines {
		f.lines[i].text = clip(f.lines[i].text, w)
	}
	return f
}

func styled(style, text string, w int) []line {
	if text == "" {
		return nil
	}
	var out []line
	for _, l := range wrap(visible(text), w) {
		out = append(out, line{style, l})
	}
	return out
}

// status is the one line of a hidden card.
func (s *cardState) status(now time.Time, w int) string {
	what, left := "a question waits", s.count.show(now)
	if !s.card.isQuestion() {
		what = "an approval waits"
	}
	if left == "" {
		return fitting(w, what+", any key shows it", "any key shows it", "any key: show")
	}
	return fitting(w, left+", "+what+", any key shows it", left+", any key shows it", left+", any key")
}

// title is the first line: what it is, which of how many, and the countdown, which is never cut off.
func (s *cardState) title(now time.Time, w int) string {
	name := s.name()
	if n := len(s.card.Questions); n > 1 && !s.reviewing() {
		name += fmt.Sprintf(" (%d/%d)", s.at+1, n)
	}
	right := s.count.show(now)
	if s.late {
		right = "late answer"
	}
	if right != "" {
		right = "  " + right
	}
	return clip(clip("? "+name, max(w-width(right), 4))+right, w)
}

func (s *cardState) name() string {
	if s.reviewing() {
		return "Review"
	}
	return cardName(s.card, s.at)
}

func cardName(c Card, i int) string {
	switch {
	case c.Questions[i].Header != "":
		return oneLine(c.Questions[i].Header)
	case c.Kind == KindApproval:
		return "Approval"
	case c.Kind == KindPlan:
		return "Plan review"
	}
	return "Question"
}

// wrapCache keeps the wrapped text of the question shown: a plan may be long, and
// each tick and key draws it.
type wrapCache struct {
	at, w int
	lines []line
}

// textLines is the question and its detail.
func (s *cardState) textLines(w int) []line {
	if s.reviewing() {
		return styled(stylePlain, "These answers will be sent:", w)
	}
	if s.wrapped.lines != nil && s.wrapped.at == s.at && s.wrapped.w == w {
		return s.wrapped.lines
	}
	q := s.card.Questions[s.at]
	out := styled(styleTitle, strings.TrimSpace(q.Question), w)
	for l := range strings.SplitSeq(strings.Trim(q.Detail, "\n"), "\n") {
		if q.Detail == "" {
			break
		}
		style := stylePlain
		switch {
		case s.card.Kind == KindApproval && strings.HasPrefix(l, "+"):
			style = styleAdded
		case s.card.Kind == KindApproval && strings.HasPrefix(l, "-"):
			style = styleRemove
		}
		if l == "" {
			out = append(out, line{})
		}
		out = append(out, styled(style, l, w)...)
	}
	s.wrapped = wrapCache{s.at, w, out}
	return out
}

// rowLines is the options and the free text, or the rows of the review.
func (s *cardState) rowLines(w int) section {
	var sec section
	if s.reviewing() {
		for i, q := range s.card.Questions {
			s.addRow(&sec, i, "", oneLine(firstOf(q.Header, q.Question)), s.summary(s.answer(i)), nil, w)
		}
		s.addRow(&sec, len(s.card.Questions), "", "Send", "", nil, w)
		return sec
	}
	q, it := s.card.Questions[s.at], &s.items[s.at]
	for row := range s.rows(s.at) {
		label, description, box := "Other…", "", ""
		if row < len(q.Options) {
			label, description = oneLine(q.Options[row].Label), q.Options[row].Description
		}
		if q.MultiSelect && len(q.Options) > 0 {
			box = "[ ] "
			if row < len(q.Options) && it.marked[row] || row == len(q.Options) && !it.texts[row].blank() {
				box = "[x] "
			}
		}
		var f *field
		if s.takesText(s.at, row) && (row == it.row || it.texts[row].text != "") {
			f = &it.texts[row]
		}
		s.addRow(&sec, row, box, label, description, f, w)
	}
	return sec
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// inlineField is how many columns a text needs beside its label, else it goes below.
const inlineField = 24

func (s *cardState) addRow(sec *section, row int, box, label, description string, f *field, w int) {
	here := row == s.highlighted()
	style, mark := stylePlain, "  "
	if here {
		style, mark = styleNext, "> "
		if s.focused {
			style = styleFocus
		}
		sec.need = len(sec.lines)
	}
	mark += box
	indent := strings.Repeat(" ", len(mark))
	for i, l := range wrap(label, w-len(mark)) {
		if i == 1 {
			mark = indent
		}
		sec.lines = append(sec.lines, line{style, mark + l})
	}
	if f != nil {
		last := &sec.lines[len(sec.lines)-1]
		if used := width(last.text) + 2; w-used >= inlineField {
			head := last.text + ": "
			sec.lines = sec.lines[:len(sec.lines)-1]
			s.addField(sec, f, style, head, strings.Repeat(" ", used), here, w)
		} else {
			s.addField(sec, f, style, indent+"  ", indent+"  ", here, w)
		}
	}
	if description != "" {
		for _, l := range wrap(visible(strings.TrimSpace(description)), w-len(indent)-2) {
			sec.lines = append(sec.lines, line{styleFaint, indent + "  " + l})
		}
	}
	if here {
		sec.end = len(sec.lines)
	}
}

func (s *cardState) addField(sec *section, f *field, style, head, indent string, here bool, w int) {
	lines, row, col := f.lines(w - width(indent) + 1)
	for i, l := range lines {
		if i == 1 {
			head = indent
		}
		if here && i == row {
			sec.cursor, sec.row, sec.col = true, len(sec.lines), width(head)+col
		}
		sec.lines = append(sec.lines, line{style, head + l})
	}
}

// summary is an answer in one line, without the key.
func (s *cardState) summary(a session.Answer) string {
	parts := make([]string, 0, len(a.Selected)+1)
	for _, l := range a.Selected {
		parts = append(parts, oneLine(s.redact(l)))
	}
	if a.Custom != "" {
		parts = append(parts, oneLine(s.redact(a.Custom)))
	}
	if len(parts) == 0 {
		return "(skipped)"
	}
	return strings.Join(parts, ", ")
}
