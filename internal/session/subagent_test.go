package session

import "testing"

// What a sub-agent asked is nobody's to answer, also where it was killed before
// it could be refused; what is asked in a later run of its session is a person's.
func TestASubagentsCallsAreTrackedInLaterRunsOnly(t *testing.T) {
	child := Header{Origin: OriginSubagent, ParentSession: "p"}
	first := func(t *testing.T) *log {
		return newLog(t).add(TypeSettings, Settings{}).add(TypeSubagent, Subagent{}).add(TypeTurnStart, TurnStart{Turn: 1}).timed()
	}
	killed := func(t *testing.T) *log { return first(t).message().call("c", oneQuestion) }
	end := TurnEnd{Turn: 1, Reason: Reason{Kind: EndInterrupted}}
	for _, c := range []struct {
		name string
		of   Header
		log  func(t *testing.T) *log
		want QuestionState
	}{
		{"a root's is open", Header{}, killed, QuestionOpen},
		{"a child's is not", child, killed, ""},
		{"nor is one of its code", child, func(t *testing.T) *log { return first(t).message().start("p", "c", oneQuestion) }, ""},
		{"nor what repair closed", child, func(t *testing.T) *log { return killed(t).failed("c", CodeOutcomeUnknown) }, ""},
		{"nor what it asks when it has adapted to its server", child, func(t *testing.T) *log {
			return first(t).add(TypeSettings, Settings{}).message().call("c", oneQuestion)
		}, ""},
		{"nor later, when a person goes on", child, func(t *testing.T) *log {
			return killed(t).failed("c", CodeOutcomeUnknown).add(TypeTurnEnd, end).add(TypeSettings, Settings{})
		}, ""},
		{"what is asked then is", child, func(t *testing.T) *log {
			return first(t).add(TypeTurnEnd, end).add(TypeSettings, Settings{}).add(TypeTurnStart, TurnStart{Turn: 2}).message().call("c", oneQuestion)
		}, QuestionOpen},
		{"also if the first run had no turn", child, func(t *testing.T) *log {
			return newLog(t).add(TypeSettings, Settings{}).add(TypeSettings, Settings{}).add(TypeTurnStart, TurnStart{Turn: 1}).timed().message().call("c", oneQuestion)
		}, QuestionOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			var q Questions
			q.Of(c.of)
			for i, e := range c.log(t).events {
				e.Seq = int64(i)
				if err := q.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := q.Lookup("c"); got.State != c.want {
				t.Errorf("%q, want %q", got.State, c.want)
			}
		})
	}
}
