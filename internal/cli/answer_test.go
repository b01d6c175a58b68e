package cli

import (
	"errors"
	"fmt"
	"testing"

	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// TestARefusedAnswerHasOneExitCode: the same whether flags or a card brought it.
func TestARefusedAnswerHasOneExitCode(t *testing.T) {
	for code, want := range map[string]int{
		remote.CodeReadOnlyWait:  ExitNotAnswerable,
		question.CodeBadAnswer:   ExitNotAnswerable,
		question.CodeReplyQueued: ExitNotAnswerable,
		remote.CodeParse:         ExitFailed,
	} {
		for _, err := range []error{
			&remote.Error{Code: code, Message: "no"},
			fmt.Errorf("claim the question: %w", deskError(&remote.Error{Code: code, Message: "no"})),
		} {
			if got := failure(new(answering).refusal(answerable{callID: "c"}, err)).Exit; got != want {
				t.Errorf("%s as %T: exit %d, want %d", code, err, got, want)
			}
		}
	}
	if err := errors.New("x"); !errors.Is(new(answering).refusal(answerable{}, err), err) {
		t.Error("an error of another kind is not kept")
	}
}

// TestASessionIsListedByWhatItsPersonSaid: never by the words of this program.
func TestASessionIsListedByWhatItsPersonSaid(t *testing.T) {
	round := session.NewUserMessage("m", "Round 1 of at most 9", session.Source{Kind: session.SourceGoal, GoalID: "g", Round: 1})
	task := session.NewUserMessage("m", "the task", session.Source{Kind: session.SourceUser})
	queued := func(m session.UserMessage) session.InboxSpliced {
		return session.InboxSpliced{Target: session.NextTurn, Inserted: []session.UserMessage{m}}
	}
	goal := func(objective string) session.GoalChange {
		return session.GoalChange{Goal: &session.Goal{ID: "g", Objective: objective}}
	}
	for name, c := range map[string]struct {
		events []any
		want   string
	}{
		"a task":                        {[]any{queued(task)}, "the task"},
		"a goal alone":                  {[]any{goal("all\ntests pass"), queued(round), round, queued(task)}, "all tests pass"},
		"a goal and a task":             {[]any{goal("all tests pass"), queued(task), queued(round)}, "the task"},
		"a goal that was changed first": {[]any{goal("a"), goal("b"), queued(round)}, "b"},
		"a goal without a round":        {[]any{goal("a"), session.GoalChange{}}, ""},
	} {
		var f taskFold
		for i, data := range c.events {
			typ := session.TypeInboxSpliced
			switch data.(type) {
			case session.GoalChange:
				typ = session.TypeGoalChange
			case session.UserMessage:
				typ = session.TypeUserMessage
			}
			e, err := session.NewEvent(typ, 1, data)
			if err != nil {
				t.Fatal(err)
			}
			e.Seq = int64(i)
			if err := f.apply(logstore.Line{Type: typ, Raw: e.AppendLine(nil)}); err != nil {
				t.Fatal(err)
			}
		}
		if f.task != c.want {
			t.Errorf("%s: %q, want %q", name, f.task, c.want)
		}
	}
}
