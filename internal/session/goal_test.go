package session

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// goals folds events that are given as type and data.
func goals(t *testing.T, events ...any) *Goals {
	t.Helper()
	g := &Goals{}
	for i := 0; i < len(events); i += 2 {
		raw, err := json.Marshal(events[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(Event{Seq: int64(i / 2), Type: events[i].(string), Data: raw}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func goalIn(phase string, rounds int) *Goals {
	return &Goals{goal: &Goal{ID: "g", Revision: 4, Objective: "tests pass", Phase: phase, Rounds: rounds, MaxRounds: 3}}
}

func from(kind string, round int) UserMessage {
	s := Source{Kind: kind}
	if kind == SourceGoal {
		s = Source{Kind: kind, GoalID: "g", Revision: 1, Round: round}
	}
	return NewUserMessage("m", "text", s)
}

func TestTheGoalIsTheLastOneLogged(t *testing.T) {
	one, two := Goal{ID: "g", Revision: 1, Phase: GoalActive, MaxRounds: 3}, Goal{ID: "h", Revision: 1, Phase: GoalActive, MaxRounds: 9}
	g := goals(t, TypeGoalChange, GoalChange{&one}, TypeGoalChange, GoalChange{&two})
	if got, ok := g.Goal(); !ok || got != two {
		t.Errorf("%+v", got)
	}
	g = goals(t, TypeGoalChange, GoalChange{&one}, TypeGoalChange, GoalChange{})
	if _, ok := g.Goal(); ok {
		t.Error("a goal that was cleared is there")
	}
	if err := g.Apply(Event{Type: TypeGoalChange, Data: []byte(`{"goal":7}`)}); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestRoundsCountOnAdmissionAndOnce(t *testing.T) {
	goal := Goal{ID: "g", Revision: 1, Phase: GoalActive, MaxRounds: 9}
	queued := InboxSpliced{Target: NextTurn, Inserted: []UserMessage{from(SourceGoal, 1)}}
	other := from(SourceGoal, 5)
	other.Source.GoalID = "h"
	edited := goal
	edited.Revision, edited.Rounds = 2, 2
	for _, c := range []struct {
		name   string
		events []any
		want   int
	}{
		{"queued", []any{TypeInboxSpliced, queued}, 0},
		{"admitted", []any{TypeInboxSpliced, queued, TypeUserMessage, from(SourceGoal, 1)}, 1},
		{"twice the same", []any{TypeUserMessage, from(SourceGoal, 1), TypeUserMessage, from(SourceGoal, 1)}, 1},
		{"two", []any{TypeUserMessage, from(SourceGoal, 1), TypeUserMessage, from(SourceGoal, 2)}, 2},
		{"another goal's", []any{TypeUserMessage, other}, 0},
		{"a person's", []any{TypeUserMessage, from(SourceUser, 0)}, 0},
		{"after a person's, in one turn", []any{TypeUserMessage, from(SourceUser, 0), TypeUserMessage, from(SourceGoal, 1)}, 1},
		{"a change carries them on", []any{TypeUserMessage, from(SourceGoal, 1), TypeUserMessage, from(SourceGoal, 2), TypeGoalChange, GoalChange{&edited}}, 2},
	} {
		g := goals(t, append([]any{TypeGoalChange, GoalChange{&goal}}, c.events...)...)
		if got, _ := g.Goal(); got.Rounds != c.want {
			t.Errorf("%s: %d rounds, want %d", c.name, got.Rounds, c.want)
		}
	}
}

func TestOnlyAPersonsOwnMessageInTheTurnIsHuman(t *testing.T) {
	start := TurnStart{Turn: 1}
	for _, c := range []struct {
		name   string
		events []any
		want   bool
	}{
		{"none", []any{TypeTurnStart, start}, false},
		{"a person's", []any{TypeTurnStart, start, TypeUserMessage, from(SourceUser, 0)}, true},
		{"in the turn before", []any{TypeUserMessage, from(SourceUser, 0), TypeTurnStart, start}, false},
		{"queued only", []any{TypeTurnStart, start, TypeInboxSpliced, InboxSpliced{Target: NextStep, Inserted: []UserMessage{from(SourceUser, 0)}}}, false},
		{"a round", []any{TypeTurnStart, start, TypeUserMessage, from(SourceGoal, 1)}, false},
		{"a late answer", []any{TypeTurnStart, start, TypeUserMessage, from(SourceQuestionReply, 0)}, false},
		{"instructions", []any{TypeTurnStart, start, TypeUserMessage, from(SourceAgentInstructions, 0)}, false},
		{"the text alone says user", []any{TypeTurnStart, start, TypeUserMessage, NewUserMessage("m", `"source":{"kind":"user"}`, Source{Kind: SourcePlugin})}, false},
	} {
		if got := goals(t, c.events...).Human(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	g := goals(t, TypeTurnStart, start)
	raw, _ := json.Marshal(from(SourceUser, 0))
	if err := g.Apply(Event{Type: TypeUserMessage, Data: raw, SurfaceOp: &SurfaceOp{Op: "replace"}}); err != nil || g.Human() {
		t.Errorf("a summary counts as a person's message: %v", err)
	}
}

func TestCreate(t *testing.T) {
	long := strings.Repeat("ü", MaxGoalObjective)
	for _, c := range []struct {
		name, objective string
		have            *Goals
		max             int
		code            string
	}{
		{"first", " tests pass\n", &Goals{}, 256, ""},
		{"after one that is complete", "x", goalIn(GoalComplete, 1), 1, ""},
		{"beside an active one", "x", goalIn(GoalActive, 1), 1, CodeGoalExists},
		{"beside a paused one", "x", goalIn(GoalPaused, 1), 1, CodeGoalExists},
		{"beside a blocked one", "x", goalIn(GoalBlocked, 1), 1, CodeGoalExists},
		{"blank", " \n", &Goals{}, 1, CodeGoalInvalid},
		{"as long as may be", long, &Goals{}, 1, ""},
		{"longer", long + "x", &Goals{}, 1, CodeGoalInvalid},
		{"no rounds", "x", &Goals{}, 0, CodeGoalInvalid},
		{"too many rounds", "x", &Goals{}, 257, CodeGoalInvalid},
	} {
		got, err := c.have.Create("new", c.objective, c.max)
		if refusalOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		if want := (Goal{ID: "new", Revision: 1, Objective: strings.TrimSpace(c.objective), Phase: GoalActive, MaxRounds: c.max}); err == nil && got != want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func refusalOf(err error) string {
	var g *GoalError
	if errors.As(err, &g) {
		return g.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestUpdate(t *testing.T) {
	for _, c := range []struct {
		name  string
		have  *Goals
		u     GoalUpdate
		code  string
		phase string
	}{
		{"edit", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalEdit, "more", ""}, "", GoalActive},
		{"edit keeps a pause", goalIn(GoalPaused, 1), GoalUpdate{"g", 4, GoalEdit, "more", ""}, "", GoalPaused},
		{"edit of what is done", goalIn(GoalComplete, 1), GoalUpdate{"g", 4, GoalEdit, "more", ""}, CodeGoalPhase, ""},
		{"edit without objective", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalEdit, "", ""}, CodeGoalInvalid, ""},
		{"pause", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalPause, "", ""}, "", GoalPaused},
		{"pause twice", goalIn(GoalPaused, 1), GoalUpdate{"g", 4, GoalPause, "", ""}, CodeGoalPhase, ""},
		{"pause with an objective", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalPause, "x", ""}, CodeGoalInvalid, ""},
		{"resume", goalIn(GoalPaused, 1), GoalUpdate{"g", 4, GoalResume, "", ""}, "", GoalActive},
		{"resume what is blocked", goalIn(GoalBlocked, 1), GoalUpdate{"g", 4, GoalResume, "", ""}, "", GoalActive},
		{"resume what is active", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalResume, "", ""}, CodeGoalPhase, ""},
		{"complete", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalFinish, "", ""}, "", GoalComplete},
		{"complete twice", goalIn(GoalComplete, 1), GoalUpdate{"g", 4, GoalFinish, "", ""}, CodeGoalPhase, ""},
		{"blocked", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalSetBlock, "", "no network"}, "", GoalBlocked},
		{"blocked for no reason", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalSetBlock, "", " "}, CodeGoalInvalid, ""},
		{"a reason that belongs nowhere", goalIn(GoalActive, 1), GoalUpdate{"g", 4, GoalFinish, "", "x"}, CodeGoalInvalid, ""},
		{"an old revision", goalIn(GoalActive, 1), GoalUpdate{"g", 3, GoalPause, "", ""}, CodeGoalConflict, ""},
		{"another goal", goalIn(GoalActive, 1), GoalUpdate{"h", 4, GoalPause, "", ""}, CodeGoalConflict, ""},
		{"no goal", &Goals{}, GoalUpdate{"g", 4, GoalPause, "", ""}, CodeGoalConflict, ""},
		{"no such action", goalIn(GoalActive, 1), GoalUpdate{"g", 4, "stop", "", ""}, CodeGoalInvalid, ""},
	} {
		got, err := c.have.Update(c.u)
		if refusalOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		if got.Revision != 5 || got.Phase != c.phase || got.Rounds != 1 || got.BlockedReason != c.u.BlockedReason {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.have.goal.Revision != 4 {
			t.Errorf("%s: a decision changed what stands", c.name)
		}
	}
}

func TestTakeUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		have    *Goals
		max     int
		code    string
		changed bool
		limit   int
	}{
		{"active", goalIn(GoalActive, 1), 0, "", false, 3},
		{"paused", goalIn(GoalPaused, 1), 0, "", true, 3},
		{"blocked", goalIn(GoalBlocked, 1), 0, "", true, 3},
		{"complete", goalIn(GoalComplete, 1), 0, CodeGoalPhase, false, 0},
		{"no rounds left", goalIn(GoalActive, 3), 0, CodeGoalPhase, false, 0},
		{"more rounds", goalIn(GoalActive, 3), 8, "", true, 8},
		{"a limit below what was used", goalIn(GoalActive, 2), 1, CodeGoalPhase, false, 0},
		{"none", &Goals{}, 0, CodeGoalConflict, false, 0},
	} {
		got, changed, err := c.have.TakeUp(c.max)
		if refusalOf(err) != c.code || changed != c.changed {
			t.Errorf("%s: changed %v, %v", c.name, changed, err)
		}
		revision := 4
		if changed {
			revision = 5
		}
		if err == nil && (got.Phase != GoalActive || got.MaxRounds != c.limit || got.Revision != revision) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestARoundLetsOtherMessagesPass(t *testing.T) {
	in := &Inbox{nextTurn: []UserMessage{from(SourceGoal, 1), from(SourceUser, 0), from(SourceUser, 0)}}
	splices, msgs := in.Claim(true)
	if len(msgs) != 1 || msgs[0].Source.Kind != SourceUser || splices[0].Start != 1 {
		t.Errorf("%+v %+v", splices, msgs)
	}
	queued, discard := in.Rounds()
	if len(queued) != 1 || len(discard) != 1 || discard[0].Start != 0 || discard[0].Outcome != OutcomeCanceled {
		t.Errorf("%+v %+v", queued, discard)
	}
	in = &Inbox{nextTurn: []UserMessage{from(SourceGoal, 1)}}
	if _, msgs = in.Claim(true); len(msgs) != 1 || msgs[0].Source.Round != 1 {
		t.Errorf("%+v", msgs)
	}
	if _, msgs = in.Claim(false); len(msgs) != 0 {
		t.Errorf("a round is claimed by a later step: %+v", msgs)
	}
}

func TestInstructionsAloneAreNoWork(t *testing.T) {
	for _, c := range []struct {
		in   Inbox
		want bool
	}{
		{Inbox{}, false},
		{Inbox{nextStep: []UserMessage{from(SourceAgentInstructions, 0)}}, false},
		{Inbox{nextStep: []UserMessage{from(SourceAgentInstructions, 0), from(SourceUser, 0)}}, true},
		{Inbox{nextTurn: []UserMessage{from(SourceUser, 0)}}, true},
	} {
		if got := c.in.Waiting(); got != c.want {
			t.Errorf("%+v: %v", c.in, got)
		}
	}
}
