package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"deepseek/internal/session"
)

// TestPageKeysReachEveryLineAtEverySize: what has no room comes into sight with Page Down, and
// again with Page Up. The screens together hold every line, in both directions.
func TestPageKeysReachEveryLineAtEverySize(t *testing.T) {
	long := session.Question{ID: "q", Header: "Long", Question: strings.Repeat("why and how, ", 10)}
	for i := range 6 {
		long.Options = append(long.Options, session.Option{Label: fmt.Sprintf("option %d", i), Description: fmt.Sprintf("%d: ", i) + strings.Repeat("a long story ", 4)})
	}
	several, words := long, long
	several.MultiSelect, words.Options = true, nil
	plan := approvalCard()
	plan.Kind = KindPlan
	approval := approvalCard()
	for i := range 40 {
		plan.Questions[0].Detail += fmt.Sprintf("\nstep number %d", i)
		approval.Questions[0].Detail += fmt.Sprintf("\n+ line %d", i)
	}
	review := func() *cardState {
		s := newState(batch())
		press(s, keyEnter, strings.Repeat("word ", 15), keyEnter, keyEnter)
		return s
	}
	late := func() *cardState {
		s := newState(timedCard(long))
		s.becomeLate(epoch, "the wait ended before this answer")
		return s
	}
	for name, make := range map[string]func() *cardState{
		"question": func() *cardState { return newState(timedCard(long)) },
		"several":  func() *cardState { return newState(timedCard(several)) },
		"words":    func() *cardState { return newState(timedCard(words)) },
		"approval": func() *cardState { return newState(approval) },
		"plan":     func() *cardState { return newState(plan) },
		"review":   review,
		"late":     late,
	} {
		for cols := 12; cols <= 90; cols += 1 + cols/2 {
			for rows := 3; rows <= 30; rows += 1 + rows/8 {
				s := make()
				s.view(epoch, cols, rows)
				for _, code := range []keyCode{keyPageDown, keyPageUp} {
					missing := map[string]bool{}
					for _, l := range append(s.textLines(cols-1), s.rowLines(cols-1).lines...) {
						missing[l.text] = true
					}
					for still := 0; still < 3; {
						before := s.pages
						f := s.view(epoch, cols, rows)
						fits(t, f, cols, rows)
						for _, l := range f.lines {
							delete(missing, l.text)
						}
						press(s, code)
						s.view(epoch, cols, rows)
						if still++; s.pages != before {
							still = 0
						}
					}
					if len(missing) > 0 {
						t.Fatalf("%s, %d×%d, key %v: never seen: %q", name, cols, rows, code, slices.Collect(maps.Keys(missing)))
					}
				}
			}
		}
	}
}

// TestEnterTakesNothingThatIsNotToBeSeen: over a page of options without the highlighted one,
// Enter goes back to that.
func TestEnterTakesNothingThatIsNotToBeSeen(t *testing.T) {
	s := newState(timedCard(many(40)))
	s.view(epoch, 40, 8)
	for range 8 {
		press(s, keyPageDown)
		s.view(epoch, 40, 8)
	}
	if shown := plainOf(s.view(epoch, 40, 8)); strings.Contains(shown, "> ") {
		t.Fatalf("the highlighted row is on the page:\n%s", shown)
	}
	if eff := s.key(key{code: keyEnter}, epoch); eff != effectNone {
		t.Fatalf("Enter asked for %v", eff)
	}
	if shown := plainOf(s.view(epoch, 40, 8)); !strings.Contains(shown, "> option 1") {
		t.Fatalf("not back at the highlighted row:\n%s", shown)
	}
	s.drawn = true
	if eff := s.key(key{code: keyEnter}, epoch); eff != effectSubmit {
		t.Fatalf("Enter asked for %v", eff)
	}
}
