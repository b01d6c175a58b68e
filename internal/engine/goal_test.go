package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/goal"
)

// startGoal is start with the tools of goals.
func startGoal(t *testing.T, log *memLog, llm *play, change func(*Options), tools ...tool.Tool) *world {
	t.Helper()
	var w *world
	n := 0
	tools = append(tools, goal.New(goal.Env{
		View: func(f func(*session.State)) { w.View(f) },
		Change: func(ctx context.Context, decide func(*session.State) (*session.Goal, error)) error {
			return w.ChangeGoal(ctx, decide)
		},
		NewID: func() string { n++; return fmt.Sprintf("made-%d", n) }, MaxRounds: 256,
	})...)
	w = start(t, log, llm, change, tools...)
	return w
}

// pursue runs the goal alone.
func (w *world) pursue(g GoalStart) (session.RunResult, session.Reason) {
	w.t.Helper()
	if g.Objective != "" && g.MaxRounds == 0 {
		g.MaxRounds = 9
	}
	res, end, err := w.Run(w.t.Context(), RunOptions{Goal: &g}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, end
}

func (w *world) goal() (g session.Goal) {
	w.View(func(s *session.State) { g, _ = s.Goals.Goal() })
	return g
}

func (w *world) inbox() (n int) {
	w.View(func(s *session.State) { n = s.Inbox.Len(session.NextTurn) + s.Inbox.Len(session.NextStep) })
	return n
}

// updates the goal as the model would that has read it.
func (w *world) updates(id, action, more string) answer {
	return func(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
		g := w.goal()
		args := fmt.Sprintf(`{"goal_id":%q,"revision":%d,"action":%q%s}`, g.ID, g.Revision, action, more)
		return model.Response{Finish: model.FinishToolCalls, Calls: []session.Call{{ID: id, Name: "update_goal", Arguments: args}}}, nil
	}
}

func callsTool(id, name, args string) answer {
	return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Finish: model.FinishToolCalls, Calls: []session.Call{{ID: id, Name: name, Arguments: args}}}, nil
	}
}

// admitted lists what entered the history as users' messages: a round as its
// number, everything else as its text.
func (w *world) admitted() string {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	var out []string
	for _, e := range w.log.events {
		if e.Type != session.TypeUserMessage {
			continue
		}
		var m session.UserMessage
		if err := json.Unmarshal(e.Data, &m); err != nil {
			w.t.Fatal(err)
		}
		if m.Source.Kind == session.SourceGoal {
			out = append(out, fmt.Sprint(m.Source.Round))
		} else {
			out = append(out, session.TextOf(m.Content))
		}
	}
	return strings.Join(out, " ")
}

func user() session.Source { return session.Source{Kind: session.SourceUser} }

func TestAGoalGetsRoundsUntilItIsComplete(t *testing.T) {
	llm := &play{}
	w := startGoal(t, newMemLog(), llm, nil)
	llm.next = []answer{says("one"), says("two"), w.updates("c", "complete", ""), says("three")}
	res, end := w.pursue(GoalStart{Objective: "tests pass"})
	w.wantTypes(0, `session/settings goal/change receipt
		turn/start claim step/start user/message header context assistant/message step/end end(completed) receipt
		turn/start claim step/start user/message assistant/message step/end end(completed) receipt
		turn/start claim step/start user/message assistant/message call(c) goal/change result(c) step/end
		step/start assistant/message step/end end(completed)`)
	if res.MessageID != nil || res.FinalResponse != "three" || *res.FinishReason != "completed" || res.Steps != 4 || end.Kind != "completed" {
		t.Errorf("%+v %+v", res, end)
	}
	if g := w.goal(); g.Phase != session.GoalComplete || g.Rounds != 3 || g.Revision != 2 {
		t.Errorf("%+v", g)
	}
	if got := w.heard(); !strings.Contains(got, "Round 3 of at most 9") || !strings.Contains(got, "tests pass") {
		t.Errorf("model heard %s", got)
	}
	if w.Status() != Idle || w.inbox() != 0 {
		t.Error("something is left")
	}
}

func TestATaskComesBeforeTheFirstRound(t *testing.T) {
	w := startGoal(t, newMemLog(), &play{next: []answer{says("task"), says("round")}}, nil)
	res, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Goal: &GoalStart{Objective: "o", MaxRounds: 1}}, nil)
	if err != nil || res.MessageID == nil || res.FinalResponse != "round" || w.admitted() != "x 1" {
		t.Errorf("%+v, admitted %s, %v", res, w.admitted(), err)
	}
	if log := w.types(0); !strings.HasPrefix(log, "session/settings receipt goal/change turn/start ") || res.Events.From != 1 {
		t.Errorf("from %d of %s", res.Events.From, log)
	}
}

func TestInstructionsEnterWithTheFirstRound(t *testing.T) {
	w := startGoal(t, newMemLog(), &play{next: []answer{says("round")}}, func(o *Options) { o.Instructions = "be brief" })
	res, _ := w.pursue(GoalStart{Objective: "o", MaxRounds: 1})
	if res.Steps != 1 || w.admitted() != "be brief 1" {
		t.Errorf("%+v, admitted %s", res, w.admitted())
	}
}

func TestAGoalRestsWhenItsRoundsAreUsed(t *testing.T) {
	w := startGoal(t, newMemLog(), &play{next: []answer{says("one"), says("two"), says("more")}}, nil)
	res, end := w.pursue(GoalStart{Objective: "o", MaxRounds: 2})
	if g := w.goal(); end.Kind != "completed" || res.FinalResponse != "two" || g.Phase != session.GoalActive || g.Rounds != 2 {
		t.Errorf("%+v %+v", res, g)
	}
	var refused *session.GoalError
	if _, _, err := w.Run(t.Context(), RunOptions{Goal: &GoalStart{}}, nil); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	w.pursue(GoalStart{MaxRounds: 3})
	if g := w.goal(); g.Rounds != 3 || g.MaxRounds != 3 || g.Revision != 2 {
		t.Errorf("%+v", g)
	}
}

func TestWhatRestsAGoal(t *testing.T) {
	for _, c := range []struct {
		name  string
		how   func(w *world) answer
		phase string
	}{
		{"complete", func(w *world) answer { return w.updates("c", "complete", "") }, session.GoalComplete},
		{"blocked", func(w *world) answer { return w.updates("c", "blocked", `,"blocked_reason":"no network"`) }, session.GoalBlocked},
	} {
		llm := &play{}
		w := startGoal(t, newMemLog(), llm, nil)
		llm.next = []answer{c.how(w), says("done"), says("too much")}
		res, _ := w.pursue(GoalStart{Objective: "o"})
		if g := w.goal(); g.Phase != c.phase || g.Rounds != 1 || res.FinalResponse != "done" {
			t.Errorf("%s: %+v %+v", c.name, g, res)
		}
	}
}

func TestATurnThatEndsOtherwiseRestsTheGoalUntilALaterMessage(t *testing.T) {
	cut := func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Text: "half", Finish: model.FinishLength}, nil
	}
	for _, c := range []struct {
		name   string
		first  answer
		change func(*Options)
		kind   string
		rounds int
	}{
		{"error", fails(&model.Error{Code: "AUTH", Message: "no"}), nil, "error", 1},
		{"max-steps", says("one"), func(o *Options) { o.MaxSteps = 1 }, "max-steps", 1},
		{"max-tokens goes on", cut, nil, "completed", 2},
	} {
		w := startGoal(t, newMemLog(), &play{next: []answer{c.first, says("two"), says("three"), says("four")}}, c.change)
		_, end := w.pursue(GoalStart{Objective: "o", MaxRounds: 2})
		if g := w.goal(); end.Kind != c.kind || g.Rounds != c.rounds || g.Phase != session.GoalActive {
			t.Errorf("%s: %+v %+v", c.name, end, g)
		}
		if c.kind != "error" {
			continue
		}
		if _, err := w.Followup(t.Context(), text("again"), user()); err != nil {
			t.Fatal(err)
		}
		if err := w.WhenIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.admitted() != "1 again 2" {
			t.Errorf("%s: admitted %s", c.name, w.admitted())
		}
	}
}

func TestStepsOfAllRoundsCountTogether(t *testing.T) {
	w := startGoal(t, newMemLog(), &play{next: []answer{says("one"), calls("get_goal:a"), says("three")}}, func(o *Options) { o.MaxSteps = 2 })
	res, end := w.pursue(GoalStart{Objective: "o"})
	if end.Kind != "max-steps" || res.Steps != 2 || w.admitted() != "1 2" {
		t.Errorf("%+v %+v %s", end, res, w.admitted())
	}
}

func TestCancelInARoundRestsTheGoal(t *testing.T) {
	for _, keep := range []bool{true, false} {
		var w *world
		llm := &play{next: []answer{says("one"), func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
			if err := w.Cancel(context.WithoutCancel(ctx), session.Cause{Kind: session.CauseUser}, keep); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return model.Response{Text: "half"}, ctx.Err()
		}, says("more")}}
		w = startGoal(t, newMemLog(), llm, nil)
		res, end := w.pursue(GoalStart{Objective: "o"})
		if g := w.goal(); end.Kind != "aborted" || g.Rounds != 2 || g.Phase != session.GoalActive || res.FinalResponse != "half" || w.inbox() != 0 {
			t.Errorf("keep %v: %+v %+v %+v", keep, end, g, res)
		}
	}
}

func TestAPersonsMessageComesBeforeTheNextRound(t *testing.T) {
	var w *world
	llm := &play{next: []answer{func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		_, err := w.Followup(ctx, text("hello"), user())
		return model.Response{Text: "one", Finish: model.FinishStop}, err
	}, says("hi"), says("two")}}
	w = startGoal(t, newMemLog(), llm, nil)
	res, _ := w.pursue(GoalStart{Objective: "o", MaxRounds: 2})
	if w.admitted() != "1 hello 2" || res.FinalResponse != "two" {
		t.Errorf("admitted %s, %+v", w.admitted(), res)
	}
}

// TestAMessageOvertakesAQueuedRound: one that arrives after the round was queued
// and before it was claimed.
func TestAMessageOvertakesAQueuedRound(t *testing.T) {
	for _, target := range []string{session.NextTurn, session.NextStep} {
		llm := &play{next: []answer{says("one"), says("two"), says("three")}}
		w := startGoal(t, newMemLog(), llm, nil)
		w.pursue(GoalStart{Objective: "o", MaxRounds: 1})
		w.mu.Lock()
		w.state.Goals.Goal() // a round more, as if the driver had come here
		g, _ := w.state.Goals.Goal()
		g.MaxRounds, g.Revision = 2, 2
		if err := w.put(item{session.TypeGoalChange, session.GoalChange{Goal: &g}}); err != nil || !w.queueRound() {
			t.Fatal("no round is queued", err)
		}
		if err := w.insert(target, true, w.message(text("hello"), user())); err != nil {
			t.Fatal(err)
		}
		w.mu.Unlock()
		if err := w.WhenIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.admitted() != "1 hello 2" {
			t.Errorf("%s: admitted %s", target, w.admitted())
		}
	}
}

func TestAResumedSessionDoesNotGoOnByItself(t *testing.T) {
	first := startGoal(t, newMemLog(), &play{next: []answer{fails(&model.Error{Code: "AUTH", Message: "no"})}}, nil)
	first.pursue(GoalStart{Objective: "o"})
	log := newMemLog(first.log.events...)
	w := startGoal(t, log, &play{next: []answer{says("answer"), says("two"), fails(&model.Error{Code: "AUTH"})}}, nil)
	if res, _ := w.run("x"); res.FinalResponse != "answer" || w.admitted() != "1 x" {
		t.Errorf("%+v, admitted %s", res, w.admitted())
	}
	if g := w.goal(); g.Phase != session.GoalActive || g.Rounds != 1 {
		t.Errorf("%+v", g)
	}
	if _, _, err := w.Run(t.Context(), RunOptions{}, nil); err == nil {
		t.Error("a goal that is not armed is something to do")
	}
	w.pursue(GoalStart{})
	if w.admitted() != "1 x 2 3" || w.goal().Revision != 1 {
		t.Errorf("admitted %s, %+v", w.admitted(), w.goal())
	}
}

// TestAStaleRoundIsRefused: one that a crash left in the inbox, of a goal that
// nobody has armed since.
func TestAStaleRoundIsRefused(t *testing.T) {
	first := startGoal(t, newMemLog(), &play{next: []answer{says("one")}}, nil)
	first.pursue(GoalStart{Objective: "o", MaxRounds: 5})
	events := first.log.events
	at := slices.IndexFunc(events, func(e session.Event) bool { return e.Type == session.TypeTurnStart })
	left := func() *memLog { return newMemLog(slices.Clone(events[:at])...) }

	w := startGoal(t, left(), &play{next: []answer{says("never")}}, nil)
	res, end, err := w.Run(t.Context(), RunOptions{}, nil)
	if err != nil || end.Kind != session.EndBlocked || res.Steps != 0 || res.MessageID != nil || w.inbox() != 0 {
		t.Errorf("alone: %+v %+v %v", res, end, err)
	}
	w.wantTypes(at, "session/settings turn/start discard end(blocked)")

	w = startGoal(t, left(), &play{next: []answer{says("answer")}}, nil)
	if res, end := w.run("x"); end.Kind != "completed" || res.FinalResponse != "answer" || w.admitted() != "x" {
		t.Errorf("with a task: %+v %+v, admitted %s", res, end, w.admitted())
	}
	w.wantTypes(at, `session/settings receipt turn/start discard end(blocked)
		turn/start claim step/start user/message header context assistant/message step/end end(completed)`)

	w = startGoal(t, left(), &play{next: []answer{says("one"), fails(&model.Error{Code: "AUTH"})}}, nil)
	if _, end := w.pursue(GoalStart{}); end.Kind != "error" || w.admitted() != "1 2" {
		t.Errorf("armed again: %+v, admitted %s", end, w.admitted())
	}

	w = startGoal(t, left(), &play{}, nil)
	err = w.ChangeGoal(t.Context(), func(*session.State) (*session.Goal, error) { return nil, nil })
	if err != nil || w.inbox() != 0 {
		t.Errorf("a cleared goal leaves %d messages: %v", w.inbox(), err)
	}
	w.wantTypes(at, "goal/change discard")
}

func TestWhoMayChangeTheGoal(t *testing.T) {
	for _, c := range []struct {
		action, more string
		phase        string // before
		inRound      string // code
		byPerson     string
	}{
		{"edit", `,"objective":"p"`, session.GoalActive, "GOAL_NEEDS_USER", ""},
		{"pause", "", session.GoalActive, "GOAL_NEEDS_USER", ""},
		{"resume", "", session.GoalActive, "GOAL_NEEDS_USER", "GOAL_PHASE"},
		{"complete", "", session.GoalActive, "", ""},
		{"blocked", `,"blocked_reason":"r"`, session.GoalActive, "", ""},
	} {
		llm := &play{}
		w := startGoal(t, newMemLog(), llm, nil)
		llm.next = []answer{w.updates("c", c.action, c.more), says("one")}
		w.pursue(GoalStart{Objective: "o", MaxRounds: 1})
		if got, want := w.resultOf("c"), c.inRound; got != want {
			t.Errorf("%s in a round: %q, want %q", c.action, got, want)
		}
		llm = &play{}
		w = startGoal(t, newMemLog(), llm, nil)
		llm.next = []answer{w.updates("c", c.action, c.more), says("one"), says("two")}
		if _, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Goal: &GoalStart{Objective: "o", MaxRounds: 1}}, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := w.resultOf("c"), c.byPerson; got != want {
			t.Errorf("%s on a person's word: %q, want %q", c.action, got, want)
		}
	}
}

// resultOf is the code of a call's result, "" for success.
func (w *world) resultOf(id string) string {
	for _, word := range strings.Split(w.types(0), "result(") {
		if name, _, ok := strings.Cut(word, ")"); ok {
			if call, code, _ := strings.Cut(name, " "); call == id {
				return code
			}
		}
	}
	w.t.Errorf("call %s has no result", id)
	return ""
}

func TestAGoalThatThePersonAskedForBegins(t *testing.T) {
	llm := &play{}
	w := startGoal(t, newMemLog(), llm, nil)
	llm.next = []answer{
		callsTool("c", "create_goal", `{"objective":"o","max_goal_rounds":2}`), says("set"), says("one"),
		callsTool("d", "create_goal", `{"objective":"p"}`), says("two"),
	}
	res, _ := w.run("keep at it until o")
	if w.admitted() != "keep at it until o 1 2" || res.FinalResponse != "two" || w.resultOf("d") != "GOAL_NEEDS_USER" {
		t.Errorf("admitted %s, %+v", w.admitted(), res)
	}
	if g := w.goal(); g.ID != "made-1" || g.MaxRounds != 2 {
		t.Errorf("%+v", g)
	}
}

func TestAGoalThatAnotherHasChangedIsAConflict(t *testing.T) {
	llm := &play{}
	w := startGoal(t, newMemLog(), llm, nil)
	llm.next = []answer{callsTool("c", "update_goal", `{"goal_id":"nope","revision":1,"action":"complete"}`), says("one")}
	w.pursue(GoalStart{Objective: "o", MaxRounds: 1})
	if got := w.resultOf("c"); got != "GOAL_CONFLICT" {
		t.Errorf("%q", got)
	}
}

// TestOneOfTwoUpdatesWins: they saw the same revision.
func TestOneOfTwoUpdatesWins(t *testing.T) {
	w := startGoal(t, newMemLog(), &play{next: []answer{says("one")}}, nil)
	w.pursue(GoalStart{Objective: "o", MaxRounds: 1})
	g := w.goal()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = w.ChangeGoal(t.Context(), func(s *session.State) (*session.Goal, error) {
				next, err := s.Goals.Update(session.GoalUpdate{ID: g.ID, Revision: g.Revision, Action: session.GoalEdit, Objective: fmt.Sprint(i)})
				return &next, err
			})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		var refused *session.GoalError
		if err == nil {
			won++
		} else if !errors.As(err, &refused) || refused.Code != session.CodeGoalConflict {
			t.Error(err)
		}
	}
	if won != 1 || w.goal().Revision != g.Revision+1 {
		t.Errorf("%d won, %+v", won, w.goal())
	}
}

func TestAPausedGoalIsTakenUpAgain(t *testing.T) {
	llm := &play{}
	w := startGoal(t, newMemLog(), llm, nil)
	llm.next = []answer{w.updates("c", "pause", ""), says("paused"), w.updates("d", "resume", ""), says("resumed"), says("one")}
	if _, _, err := w.Run(t.Context(), RunOptions{Input: Task("pause it"), Goal: &GoalStart{Objective: "o", MaxRounds: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if g := w.goal(); g.Phase != session.GoalPaused || w.admitted() != "pause it" {
		t.Errorf("%+v, admitted %s", g, w.admitted())
	}
	w.run("resume it")
	if g := w.goal(); g.Rounds != 1 || w.admitted() != "pause it resume it 1" {
		t.Errorf("%+v, admitted %s", g, w.admitted())
	}
}

// TestAResumeByTheModelArmsNothing: only the person at the command line arms the
// goal of an earlier process.
func TestAResumeByTheModelArmsNothing(t *testing.T) {
	first := startGoal(t, newMemLog(), &play{}, nil)
	first.llm.next = []answer{first.updates("c", "blocked", `,"blocked_reason":"r"`), says("one")}
	first.pursue(GoalStart{Objective: "o"})
	llm := &play{}
	w := startGoal(t, newMemLog(first.log.events...), llm, nil)
	llm.next = []answer{w.updates("d", "resume", ""), says("resumed"), says("never")}
	res, _ := w.run("go on with the goal")
	if g := w.goal(); g.Phase != session.GoalActive || g.Rounds != 1 || res.FinalResponse != "resumed" {
		t.Errorf("%+v %+v", g, res)
	}
}
