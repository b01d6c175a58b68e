package session

import (
	"strings"
	"testing"
)

func (s *story) wants(id string) *story { return s.add(TypeApprovalAsked, ApprovalAsked{CallID: id}) }

func (s *story) decides(id, decision string) *story {
	return s.add(TypeApprovalDecided, ApprovalDecided{CallID: id, Decision: decision})
}

func (s *story) delegates(id, child, description string) *story {
	return s.add(TypeSubagent, Subagent{CallID: id, ChildSessionID: child, Description: description})
}

// What the log proves of a call without a result is told: that nothing was done
// where it had no approval, that a plan was not approved, which sub-agent it was.
func TestRepairTellsWhatTheLogProves(t *testing.T) {
	of := func(name string) *story {
		return tell(t).add(TypePlanMode, PlanMode{Active: true}).turn(1).step(1, 1).
			says(Block{Type: BlockToolCall, ID: "c1", Name: name, Arguments: "{}"}).starts("c1")
	}
	unknown, nothing := "what it did is not known", "nothing was done"
	for _, c := range []struct {
		name      string
		log       *story
		want, not string
	}{
		{"waiting for an approval", of("bash").wants("c1"), nothing, unknown},
		{"refused", of("bash").wants("c1").decides("c1", DecisionDenied), nothing, unknown},
		{"allowed", of("bash").wants("c1").decides("c1", DecisionOnce), unknown, nothing},
		{"allowed, and waiting for another", of("bash").wants("c1").decides("c1", DecisionOnce).wants("c1"), unknown, nothing},
		{"refused, and waiting for another", of("bash").wants("c1").decides("c1", DecisionDenied).wants("c1"), "neither given nor refused", unknown},
		{"another call waits", of("bash").wants("c2"), unknown, nothing},
		{"a plan is reviewed", of(PlanTool), "not approved and plan mode goes on", "Repeat it only if"},
		{"a plan was approved", of(PlanTool).add(TypePlanMode, PlanMode{}), "Carry the approved plan out", "not approved"},
		{"a sub-agent", of("delegate").delegates("c1", "s2", "kid\none"), `the sub-agent "kid one", session s2, was at work`, nothing},
		{"a sub-agent whose approval waits", of("delegate").delegates("c1", "s2", "kid").wants("c1"), "session s2, which waited for an approval", nothing},
		{"a sub-agent that was refused one", of("delegate").delegates("c1", "s2", "kid").wants("c1").decides("c1", DecisionDenied), unknown, nothing},
		{"code whose command waits", of("run_code").subStarts("c1:ptc:1", "bash", `{"command":"touch x"}`).wants("c1:ptc:1"), "did nothing, since they had no approval:\n- c1:ptc:1: bash {\"command\":\"touch x\"}: it still waited", "Calls that were running"},
		{"code whose command was allowed", of("run_code").subStarts("c1:ptc:1", "bash", `{}`).wants("c1:ptc:1").decides("c1:ptc:1", DecisionSession), "what they did:\n- c1:ptc:1: bash {}", "did nothing"},
		{"code that delegates", of("run_code").subStarts("c1:ptc:1", "delegate", `{}`).delegates("c1:ptc:1", "s2", "kid"), `what they did:` + "\n" + `- c1:ptc:1: delegate {}: the sub-agent "kid", session s2`, "did nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := repairText(t, c.log)
			if !strings.HasPrefix(got, CodeOutcomeUnknown+": ") || !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
				t.Errorf("%s\nwant %q and not %q", got, c.want, c.not)
			}
		})
	}
}

// An approval that the end of the run cut short was refused by nobody.
func TestACancelledApprovalIsNotCountedAsDenied(t *testing.T) {
	s := tell(t).turn(1).decides("a", DecisionDenied).
		add(TypeApprovalDecided, ApprovalDecided{CallID: "b", Decision: DecisionDenied, Canceled: true}).end(1, EndAborted)
	in := NewInterval(0)
	for _, e := range s.events {
		if err := in.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := in.Result().Denied; got != 1 {
		t.Errorf("%d denied", got)
	}
}
