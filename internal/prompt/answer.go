package prompt

import (
	"slices"
	"time"

	"deepseek/internal/session"
)

// How a card becomes a batch of answers.

// enter takes what is highlighted, marked or typed, and turns to what comes next.
func (s *cardState) enter(now time.Time) effect {
	if s.reviewing() {
		if s.review < len(s.card.Questions) {
			s.show(s.review, now)
			s.editing = true
			return effectNone
		}
		return s.submit()
	}
	if s.note = s.missing(s.at); s.note != "" {
		return effectNone
	}
	it := &s.items[s.at]
	if s.card.Questions[s.at].MultiSelect && !s.hasMark(s.at) && it.row < len(it.marked) {
		it.marked[it.row] = true
	}
	it.done = true
	if len(s.card.Questions) == 1 {
		return s.submit()
	}
	s.freeze()
	next := s.at + 1
	if s.editing {
		next = len(s.card.Questions)
	}
	s.show(next, now)
	return effectNone
}

// takeLabel answers every question with the label; false if one does not have it.
func (s *cardState) takeLabel(label string) bool {
	for i, q := range s.card.Questions {
		row := slices.IndexFunc(q.Options, func(o session.Option) bool { return o.Label == label })
		if row < 0 {
			return false
		}
		it := &s.items[i]
		it.row, it.done, it.texts[row] = row, true, field{}
	}
	return true
}

// submit asks for delivery. A batch of which a question was jumped over turns to that one.
func (s *cardState) submit() effect {
	for i := range s.items {
		if !s.items[i].done {
			s.at, s.pages, s.drawn = i, pages{}, false
			s.note = "this question has no answer yet"
			return effectNone
		}
	}
	s.freeze()
	return effectSubmit
}

// hasMark: something is marked or typed in a multi-select.
func (s *cardState) hasMark(i int) bool {
	it := &s.items[i]
	if slices.Contains(it.marked, true) {
		return true
	}
	return s.card.isQuestion() && !it.texts[len(it.texts)-1].blank()
}

// missing says what Enter still needs on question i, or nothing.
func (s *cardState) missing(i int) string {
	it, q := &s.items[i], s.card.Questions[i]
	if !s.takesText(i, it.row) || !it.texts[it.row].blank() {
		return ""
	}
	switch {
	case it.row < len(q.Options):
		return "say it in words, then press Enter"
	case q.MultiSelect && s.hasMark(i):
		return ""
	case len(q.Options) == 0:
		return "type an answer first"
	}
	return "type an answer, or move to an option"
}

// answers is the batch as it stands.
func (s *cardState) answers() []session.Answer {
	out := make([]session.Answer, len(s.items))
	for i := range s.items {
		out[i] = s.answer(i)
	}
	return out
}

func (s *cardState) answer(i int) session.Answer {
	it, q := &s.items[i], s.card.Questions[i]
	a := session.Answer{ID: q.ID, Selected: []string{}}
	last := len(q.Options)
	switch {
	case q.MultiSelect:
		for row, o := range q.Options {
			if it.marked[row] {
				a.Selected = append(a.Selected, o.Label)
			}
		}
		if !it.texts[last].blank() {
			a.Custom = it.texts[last].text
		}
	case it.row < last:
		a.Selected = []string{q.Options[it.row].Label}
		if s.takesText(i, it.row) {
			a.Custom = it.texts[it.row].text
		}
	default:
		a.Custom = it.texts[last].text
	}
	return a
}
