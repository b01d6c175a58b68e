package engine

import (
	"context"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// TestACancelTooLateForTheTurnRestsTheDriver: the turn had its answer already and
// ends as completed, but nothing more is begun.
func TestACancelTooLateForTheTurnRestsTheDriver(t *testing.T) {
	for _, goal := range []*GoalStart{nil, {Objective: "o", MaxRounds: 5}} {
		var w *world
		llm := &play{next: []answer{func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
			if goal == nil {
				if _, err := w.Followup(ctx, text("later"), user()); err != nil {
					t.Error(err)
				}
			}
			err := w.Cancel(context.WithoutCancel(ctx), session.Cause{Kind: session.CauseUser}, true)
			return model.Response{Text: "one", Finish: model.FinishStop}, err
		}, says("never")}}
		w = startGoal(t, newMemLog(), llm, nil)
		res, end, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Goal: goal}, nil)
		if err != nil || end.Kind != "completed" || res.FinalResponse != "one" || w.admitted() != "x" || w.Status() != Idle {
			t.Errorf("%+v %+v %v, admitted %s", res, end, err, w.admitted())
		}
	}
}

// TestWhatWasTakenBackMakesNoTurn: a message that is discarded between the
// moment it was found owed and the turn's first step.
func TestWhatWasTakenBackMakesNoTurn(t *testing.T) {
	w := start(t, newMemLog(), &play{}, nil)
	if end, err := w.turn(t.Context(), 1); end != "" || err != nil {
		t.Errorf("%q %v", end, err)
	}
	w.wantTypes(0, "")
}

func TestInstructionsAloneMakeNoTurn(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("one")}}, func(o *Options) { o.Instructions = "be brief" })
	if _, err := w.Inject(t.Context(), text("be brief"), session.Source{Kind: session.SourceAgentInstructions}); err != nil {
		t.Fatal(err)
	}
	w.Wake()
	if _, _, err := w.Run(t.Context(), RunOptions{}, nil); err == nil || w.Status() != Idle {
		t.Errorf("there is something to do: %v", err)
	}
	w.run("x")
	if w.admitted() != "be brief x" {
		t.Errorf("admitted %s", w.admitted())
	}
}
