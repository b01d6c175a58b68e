package prompt

import (
	"fmt"
	"strings"
	"time"
)

// enterGuard is how long Enter is ignored after a card has changed under the
// person's hands, so that a key meant for the old card does not answer the new.
const enterGuard = 500 * time.Millisecond

// cardState is what one card knows: whose question is shown, what is marked and
// typed, the countdown, focus. The runner of the card owns it; nothing else reads
// or changes it. It has no clock: the time comes with each call.
type cardState struct {
	card    Card
	redact  func(string) string // what is not to be shown or kept
	at      int                 // the question shown; len(card.Questions) is the review
	items   []item
	review  int  // the row of the review that is highlighted
	editing bool // the review sent the person back to one question

	count      countdown
	focused    bool
	escOnce    bool // the last key was Esc
	hidden     bool
	late       bool // the wait is over, Enter sends a late answer
	sending    bool
	drawn      bool      // what is shown has been drawn; before that Enter is dropped
	guardUntil time.Time // before it Enter is ignored
	touched    bool      // something is worth a draft
	keyed      bool      // a key has been pressed: the full hint has been read

	pages   pages
	note    string // one thing to tell, shown until the next key
	wrapped wrapCache
}

// item is the answer to one question in the making. Rows are the options in
// their order, then the free text where there is one.
type item struct {
	row    int
	marked []bool  // multi-select
	texts  []field // one a row; used by rows that take words
	done   bool    // Enter was pressed on it
}

// effect is what a key asks of the runner.
type effect int

const (
	effectNone effect = iota
	effectSubmit
	effectHandOver
	effectClose     // a blocking card is closed unanswered
	effectLeave     // a late card is put away
	effectInterrupt // Ctrl+C
	effectSuspend   // Ctrl+Z
)

func newState(card Card) *cardState {
	s := &cardState{card: card, redact: func(text string) string { return text }, late: card.Continued, items: make([]item, len(card.Questions)), review: len(card.Questions)}
	for i, q := range card.Questions {
		s.items[i].marked = make([]bool, len(q.Options))
		s.items[i].texts = make([]field, len(q.Options)+1)
	}
	return s
}

// rows is how many rows question i has.
func (s *cardState) rows(i int) int {
	n := len(s.card.Questions[i].Options)
	if s.card.isQuestion() || n == 0 {
		n++
	}
	return n
}

// takesText: the free-text row, and options of approvals and plans that ask for words.
func (s *cardState) takesText(i, row int) bool {
	opts := s.card.Questions[i].Options
	if row >= len(opts) {
		return true
	}
	switch label := opts[row].Label; {
	case s.card.isQuestion():
		return false
	case s.card.WordsFor != "":
		return label == s.card.WordsFor
	default:
		return strings.HasSuffix(label, "…") || strings.HasSuffix(label, "...")
	}
}

func (s *cardState) reviewing() bool { return s.at >= len(s.card.Questions) }

// field is the text under the highlight, or nil where there is none.
func (s *cardState) field() *field {
	if s.reviewing() {
		return nil
	}
	it := &s.items[s.at]
	if !s.takesText(s.at, it.row) {
		return nil
	}
	return &it.texts[it.row]
}

// freeze takes the countdown away for good: the person has begun to answer.
func (s *cardState) freeze() {
	s.touched = true
	s.focused = true
	s.count.freeze()
}

// leave gives focus up; what was left of the countdown goes on.
func (s *cardState) leave(now time.Time) {
	s.focused = false
	s.count.resume(now)
}

// key applies one key and says what it asks for. The order matters: keys that
// work everywhere, then a hidden card, then the card.
func (s *cardState) key(k key, now time.Time) effect {
	switch k.code {
	case keyLine:
		return s.line(k.text, now)
	case keyCtrlC:
		return effectInterrupt
	case keyCtrlZ:
		s.escOnce = false
		s.leave(now)
		return effectSuspend
	}
	if s.hidden {
		s.hidden, s.escOnce, s.drawn = false, false, false
		return effectNone
	}
	if k.code == keyEnter && (!s.drawn || now.Before(s.guardUntil)) {
		return effectNone
	}
	s.note, s.keyed = "", true
	if k.code != keyPageUp && k.code != keyPageDown && s.pages.leave() && k.code == keyEnter {
		return effectNone // what it would take is not to be seen
	}
	if k.code == keyEsc {
		return s.esc(now)
	}
	s.escOnce = false
	switch k.code {
	case keyCtrlT:
		s.freeze()
	case keyCtrlO:
		return s.handOver()
	case keyCtrlL:
		return s.hide(now)
	case keyEnter:
		return s.enter(now)
	case keyText, keyPaste:
		s.typed(k)
	default:
		s.move(k.code, now)
	}
	return effectNone
}

func (s *cardState) handOver() effect {
	switch {
	case s.late:
		return effectLeave
	case s.card.isQuestion():
		return effectHandOver
	}
	s.note = "this is not handed over; Ctrl+L puts it off"
	return effectNone
}

func (s *cardState) hide(now time.Time) effect {
	if s.late {
		return effectLeave
	}
	s.leave(now)
	s.hidden = true
	return effectNone
}

// esc leaves focus at once; a second one, with no other key between, ends or hides the card.
func (s *cardState) esc(now time.Time) effect {
	s.leave(now)
	if !s.escOnce {
		s.escOnce = true
		return effectNone
	}
	s.escOnce = false
	switch {
	case s.late:
		return effectLeave
	case !s.card.isQuestion() && s.takeLabel(s.card.EscAnswer):
		s.freeze()
		return effectSubmit
	case s.card.Blocking || !s.card.Timed:
		return effectClose
	}
	return s.hide(now)
}

// move is every key that neither answers nor types.
func (s *cardState) move(k keyCode, now time.Time) {
	if f := s.field(); f != nil && (f.text != "" || k != keyLeft && k != keyRight) {
		before := f.text
		if f.edit(k) {
			s.focus(now)
			if f.text != before {
				s.freeze()
			}
			return
		}
	}
	switch k {
	case keyUp, keyBackTab:
		s.step(-1, now)
	case keyDown, keyTab:
		s.step(1, now)
	case keyHome:
		s.step(-s.highlighted(), now)
	case keyEnd:
		s.step(s.rowCount()-1-s.highlighted(), now)
	case keyLeft:
		if s.at > 0 {
			s.show(s.at-1, now)
		}
	case keyRight:
		if !s.reviewing() && s.items[s.at].done && len(s.card.Questions) > 1 {
			s.show(s.at+1, now)
		}
	case keyPageUp:
		s.pages.up()
		s.focus(now)
	case keyPageDown:
		s.pages.down()
		s.focus(now)
	}
}

// focus holds the countdown while the person is at the card.
func (s *cardState) focus(now time.Time) {
	s.focused = true
	s.count.pause(now)
}

func (s *cardState) rowCount() int {
	if s.reviewing() {
		return len(s.card.Questions) + 1
	}
	return s.rows(s.at)
}

func (s *cardState) highlighted() int {
	if s.reviewing() {
		return s.review
	}
	return s.items[s.at].row
}

// step moves the highlight round; the first one also takes focus.
func (s *cardState) step(by int, now time.Time) {
	s.focus(now)
	n := s.rowCount()
	row := ((s.highlighted()+by)%n + n) % n
	if s.reviewing() {
		s.review = row
	} else {
		s.items[s.at].row = row
	}
}

// show turns to question i, or to the review. It counts as drawn only when it is.
func (s *cardState) show(i int, now time.Time) {
	s.focus(now)
	s.at, s.pages, s.drawn = i, pages{}, false
	if s.reviewing() {
		s.review, s.editing = len(s.card.Questions), false
	}
}

// typed brings text in: on a row that takes words, or else by going to the free
// text of a question. Space marks where there is something to mark.
func (s *cardState) typed(k key) {
	if s.reviewing() || k.text == "" && !k.cut { // an empty paste types nothing
		return
	}
	it, q := &s.items[s.at], s.card.Questions[s.at]
	if s.field() == nil {
		if k.code == keyText && k.text == " " {
			if q.MultiSelect {
				it.marked[it.row] = !it.marked[it.row]
			}
			s.freeze()
			return
		}
		if !s.card.isQuestion() {
			return
		}
		it.row = len(q.Options)
	}
	it.texts[it.row].insert(k.text)
	if k.cut {
		s.note = fmt.Sprintf("the paste was longer than %d KB, the rest of it was dropped", maxPaste>>10)
	}
	s.freeze()
}

// becomeLate: the wait ended without this answer, the question did not.
func (s *cardState) becomeLate(now time.Time, note string) {
	s.late, s.sending, s.hidden, s.escOnce = true, false, false, false
	s.count = countdown{}
	s.touched, s.drawn = true, false
	s.note = note
	s.guardUntil = now.Add(enterGuard)
}
