package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

// TestAKeyThatIsTypedIsNeitherToldNorKept; it is sent as it was typed.
func TestAKeyThatIsTypedIsNeitherToldNorKept(t *testing.T) {
	const key = "sk-0123456789"
	for name, c := range map[string]struct {
		card  Card
		plain bool
		typed []string
		then  func(*stage)
		ends  Outcome
		sees  string
	}{
		"its own answer":                 {card: timedCard(colours), then: func(s *stage) { s.press("\r") }, ends: Answered, sees: "mine is [key] (answered)"},
		"its own answer, in plain lines": {card: timedCard(colours), plain: true, typed: []string{"mine is " + key + "\n"}, ends: Answered, sees: "mine is [key] (answered)"},
		"another's answer, and what was typed": {card: timedCard(colours), then: func(s *stage) {
			s.desk.ended <- Ended{Outcome: EndedAnswered, Answers: []session.Answer{{ID: "c", Custom: "no, " + key}}}
		}, ends: Gone, sees: "no, [key] (answered, not by this card)\n  what you had typed: mine is [key]"},
		"the review of a batch": {
			card: timedCard(session.Question{ID: "a", Question: "First?"}, session.Question{ID: "b", Question: "Second?"}), typed: []string{"mine is " + key, "\r", "no", "\r"},
			then: func(s *stage) {
				s.sees("Review", "mine is [key]")
				s.misses(key)
				s.press(ctrlC)
			},
			ends: Interrupted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			synctest.Test(t, func(t *testing.T) {
				s := withDrafts(t, dir, time.Minute)
				s.prompt.Plain = c.plain
				s.prompt.Redact = func(text string) string { return strings.ReplaceAll(text, key, "[key]") }
				s.start(c.card)
				if c.typed == nil {
					c.typed = []string{"mine is " + key}
				}
				s.press(c.typed...)
				if c.then != nil {
					s.pass(draftWait)
					if data, err := os.ReadFile(filepath.Join(dir, "call_1.json")); err != nil || strings.Contains(string(data), key) || !strings.Contains(string(data), "mine is [key]") {
						t.Errorf("the draft is %s %v", data, err)
					}
					c.then(s)
				}
				s.ends(c.ends)
				s.sees(c.sees)
				if c.ends == Answered {
					s.told("respond:c=/mine is " + key)
				}
				s.misses(key)
			})
		})
	}
}
