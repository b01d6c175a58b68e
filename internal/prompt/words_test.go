package prompt

import (
	"testing"

	"deepseek/internal/session"
)

// A yes whose prefix happens to end with dots takes no words.
func TestOnlyTheNamedOptionOfAnApprovalTakesWords(t *testing.T) {
	options := []session.Option{{Label: "no"}, {Label: "no, because…"}, {Label: "yes, once"}, {Label: "yes, for this session: ls ./..."}}
	for _, c := range []struct {
		kind, wordsFor string
		want           [4]bool
	}{
		{KindApproval, "no, because…", [4]bool{false, true, false, false}},
		{KindApproval, "", [4]bool{false, true, false, true}},
		{KindQuestion, "", [4]bool{}},
	} {
		s := newState(Card{Kind: c.kind, WordsFor: c.wordsFor, Questions: []session.Question{{ID: "a", Question: "?", Options: options}}})
		for row, want := range c.want {
			if got := s.takesText(0, row); got != want {
				t.Errorf("%s %q: row %d takes words: %v", c.kind, c.wordsFor, row, got)
			}
		}
	}
}
