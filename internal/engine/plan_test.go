package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/plan"
)

// startPlan is start with a tool that reads, one that changes, and plan mode.
// answer is what the person does with a review, nil: nobody is asked.
func startPlan(t *testing.T, log *memLog, llm *play, answer func(*question.Claim)) (*world, *int) {
	t.Helper()
	changed := 0
	var w *world
	tools := []tool.Tool{
		fn{"read", tool.Traits{ReadOnly: true, Parallel: true}, ok("text")},
		fn{"bash", tool.Traits{}, func(context.Context, tool.Call) tool.Result { changed++; return tool.Result{Content: "done"} }},
		fn{"mcp__s__t", tool.Traits{ReadOnly: true}, ok("mcp")},
		fn{"run_code", tool.Traits{}, ok("code")},
		fn{"delegate", tool.Traits{}, ok("child")},
	}
	service := question.New("s1", question.SystemClock{})
	w = start(t, log, llm, func(o *Options) {
		all, err := tool.NewRegistry(tools...)
		if err != nil {
			t.Fatal(err)
		}
		o.PlanTools, err = plan.Offer(all, plan.Env{
			Ask: service.Ask,
			Active: func() (active bool) {
				w.View(func(s *session.State) { active = s.Plan })
				return active
			},
			Leave: func(ctx context.Context) error { return w.EndPlan(ctx) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}, tools...)
	service.Bind(w.Agent)
	if answer != nil {
		t.Cleanup(service.Provide(func(question.Card) bool { return true }))
		t.Cleanup(service.Watch(func(ev question.Event) {
			if ev.Type != question.Opened {
				return
			}
			if ev.Card.Timed || ev.Card.Kind != question.KindPlanReview || ev.Card.Questions[0].Detail != "do it" {
				t.Errorf("card %+v", ev.Card)
			}
			claim, ok := service.Attach(ev.Card.CallID)
			if !ok {
				t.Error("nothing to claim")
				return
			}
			go answer(claim)
		}))
	}
	return w, &changed
}

func (w *world) planRun(task string) (session.RunResult, session.Reason) {
	w.t.Helper()
	res, end, err := w.Run(w.t.Context(), RunOptions{Input: Task(task), Plan: true}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, end
}

func (w *world) planned() (active bool) {
	w.View(func(s *session.State) { active = s.Plan })
	return active
}

// names are the tools of request i.
func (w *world) names(i int) string {
	w.llm.mu.Lock()
	defer w.llm.mu.Unlock()
	if i >= len(w.llm.reqs) {
		return ""
	}
	var names []string
	for _, s := range w.llm.reqs[i].Tools {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func picks(t *testing.T, label, words string) func(*question.Claim) {
	return func(c *question.Claim) {
		ok, err := c.Respond(t.Context(), []session.Answer{{ID: "plan", Selected: []string{label}, Custom: words}})
		if !ok || err != nil {
			t.Errorf("the answer is not accepted: %v %v", ok, err)
		}
	}
}

// reviews asks for a review and then makes the other calls, "name:id" each.
func reviews(id string, more ...string) answer {
	return func(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
		resp, err := calls(append([]string{"exit_plan_mode:" + id}, more...)...)(ctx, req, sink)
		for i, c := range resp.Calls {
			if c.Name == plan.Name {
				resp.Calls[i].Arguments = `{"plan":"do it"}`
			}
		}
		return resp, err
	}
}

const (
	planTools = "read exit_plan_mode"
	allTools  = "read bash mcp__s__t run_code delegate"
)

func TestAnApprovedPlanBringsAllToolsFromTheNextStepOn(t *testing.T) {
	llm := &play{next: []answer{calls("read:r", "bash:b"), reviews("p", "bash:c"), calls("bash:d"), says("done")}}
	w, changed := startPlan(t, newMemLog(), llm, picks(t, plan.LabelApprove, ""))
	res, end := w.planRun("x")
	w.wantTypes(0, `session/settings plan/mode receipt turn/start claim step/start user/message header context
		assistant/message call(r) result(r) call(b) result(b UNKNOWN_TOOL) step/end
		step/start assistant/message call(p) plan/mode result(p) call(c) result(c UNKNOWN_TOOL) step/end
		step/start header assistant/message call(d) result(d) step/end
		step/start assistant/message step/end end(completed)`)
	if w.names(0) != planTools || w.names(1) != planTools || w.names(2) != allTools || w.planned() || *changed != 1 {
		t.Errorf("tools %q, %q; plan %v, changed %d times", w.names(0), w.names(2), w.planned(), *changed)
	}
	if res.FinalResponse != "done" || end.Kind != "completed" || res.Events.From != 2 {
		t.Errorf("%+v", res)
	}
	if !strings.Contains(string(w.log.events[24].Data), `"reason":"change"`) {
		t.Errorf("%s", w.log.events[24].Data)
	}
}

func TestWhatIsNoApproval(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(*question.Claim)
		code   string
		says   string
	}{
		{"declined", picks(t, plan.LabelDecline, ""), "", "declined the plan."},
		{"declined with words", picks(t, plan.LabelBecause, "too big"), "", "declined the plan, because: too big"},
		{"a yes with a condition", picks(t, plan.LabelApprove, "but no tests"), "", "did not simply approve the plan, but said: but no tests"},
		{"Esc twice", func(c *question.Claim) {
			if ok, err := c.Reject(t.Context(), question.CodeCancelled); !ok || err != nil {
				t.Error(ok, err)
			}
		}, question.CodeCancelled, "not approved"},
		{"nobody to ask", nil, question.CodeNoProvider, "not approved"},
	} {
		llm := &play{next: []answer{reviews("p"), calls("bash:b"), says("done")}}
		w, changed := startPlan(t, newMemLog(), llm, c.answer)
		w.planRun("x")
		if got := w.resultOf("p"); got != c.code || !strings.Contains(w.heard(), c.says) {
			t.Errorf("%s: %q, model heard %s", c.name, got, w.heard())
		}
		if w.resultOf("b") != tool.CodeUnknownTool || *changed != 0 || !w.planned() || w.names(2) != planTools {
			t.Errorf("%s: plan mode is over", c.name)
		}
	}
}

func TestAReviewEndsWithTheRun(t *testing.T) {
	llm := &play{next: []answer{reviews("p")}}
	ctx, cancel := context.WithCancelCause(t.Context())
	w, _ := startPlan(t, newMemLog(), llm, func(*question.Claim) { cancel(&Canceled{session.Cause{Kind: session.CauseUser}}) })
	_, end, err := w.Run(ctx, RunOptions{Input: Task("x"), Plan: true}, nil)
	if err != nil || end.Kind != "aborted" || w.resultOf("p") != question.CodeAborted || !w.planned() {
		t.Errorf("%+v %v, plan %v", end, err, w.planned())
	}
}

func TestAPlanIsNotReviewedTwice(t *testing.T) {
	llm := &play{next: []answer{reviews("p", "exit_plan_mode:q"), reviews("r"), says("done")}}
	w, _ := startPlan(t, newMemLog(), llm, picks(t, plan.LabelApprove, ""))
	w.planRun("x")
	if w.resultOf("p") != "" || w.resultOf("q") != tool.CodeDenied || w.resultOf("r") != tool.CodeUnknownTool {
		t.Error(w.types(0))
	}
}

func TestABlankPlanIsNotShown(t *testing.T) {
	llm := &play{next: []answer{callsTool("p", plan.Name, `{"plan":" "}`), says("done")}}
	w, _ := startPlan(t, newMemLog(), llm, func(*question.Claim) { t.Error("a card was drawn") })
	w.planRun("x")
	if w.resultOf("p") != tool.CodeInvalidArguments {
		t.Error(w.types(0))
	}
}

func TestASessionStaysInPlanMode(t *testing.T) {
	first, _ := startPlan(t, newMemLog(), &play{next: []answer{says("plan")}}, nil)
	first.planRun("x")
	w, _ := startPlan(t, newMemLog(first.log.events...), &play{next: []answer{says("still"), says("still")}}, nil)
	from := len(w.log.events)
	w.run("y")
	if !w.planned() || w.names(0) != planTools || strings.Contains(w.types(from), "plan/mode") {
		t.Errorf("plan %v, tools %q, %s", w.planned(), w.names(0), w.types(from))
	}
	from = len(w.log.events)
	w.planRun("z")
	if strings.Contains(w.types(from), "plan/mode") {
		t.Errorf("plan mode begins twice: %s", w.types(from))
	}
}

func TestASessionInPlanModeWithoutToolsForItOffersNone(t *testing.T) {
	first, _ := startPlan(t, newMemLog(), &play{next: []answer{says("plan")}}, nil)
	first.planRun("x")
	w := start(t, newMemLog(first.log.events...), &play{next: []answer{calls("bash:b"), says("still")}}, nil, fn{"bash", tool.Traits{}, ok("r")})
	w.run("y")
	if w.names(0) != "" || w.resultOf("b") != tool.CodeUnknownTool {
		t.Errorf("tools %q", w.names(0))
	}
}

// TestACrashAtAnyEventOfAPlan: plan mode holds in the resumed session unless the
// person's approval is on disk.
func TestACrashAtAnyEventOfAPlan(t *testing.T) {
	for _, label := range []string{plan.LabelApprove, plan.LabelDecline} {
		whole, _ := startPlan(t, newMemLog(), &play{next: []answer{calls("read:r"), reviews("p"), says("done")}}, picks(t, label, ""))
		whole.planRun("x")
		for cut := 2; cut <= len(whole.log.events); cut++ {
			events := slices.Clone(whole.log.events[:cut])
			approved := false
			for _, e := range events {
				approved = approved || e.Type == session.TypePlanMode && strings.Contains(string(e.Data), "false")
			}
			w, changed := startPlan(t, newMemLog(events...), &play{next: []answer{calls("bash:b"), says("end"), says("end")}}, nil)
			if _, end := w.run("y"); end.Kind != "completed" {
				t.Fatalf("%s, cut at %d: %+v", label, cut, end)
			}
			if w.planned() == approved || (*changed == 1) != approved {
				t.Errorf("%s, cut at %d: plan %v, approved %v, changed %d times", label, cut, w.planned(), approved, *changed)
			}
			if approved && label == plan.LabelDecline {
				t.Errorf("cut at %d: a declined plan ends plan mode", cut)
			}
		}
	}
}

func TestAnApprovalThatCannotBeWrittenIsNone(t *testing.T) {
	log := newMemLog()
	llm := &play{next: []answer{reviews("p"), says("never")}}
	told := make(chan bool, 1)
	w, _ := startPlan(t, log, llm, func(c *question.Claim) {
		log.mu.Lock()
		log.fail = func(string, int) error { return errDisk }
		log.mu.Unlock()
		ok, _ := c.Respond(context.Background(), []session.Answer{{ID: "plan", Selected: []string{plan.LabelApprove}}})
		told <- ok
	})
	_, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Plan: true}, nil)
	if err == nil || <-told || !w.planned() {
		t.Errorf("error %v, plan %v", err, w.planned())
	}
}

// TestAGoalRestsInPlanMode: nobody has approved what its rounds would do.
func TestAGoalRestsInPlanMode(t *testing.T) {
	w, _ := startPlan(t, newMemLog(), &play{next: []answer{says("plan"), says("never")}}, nil)
	g := &GoalStart{Objective: "o", MaxRounds: 3}
	if _, _, err := w.Run(t.Context(), RunOptions{Goal: g, Plan: true}, nil); err == nil {
		t.Error("a goal is something to do")
	}
	res, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Goal: g, Plan: true}, nil)
	if err != nil || res.FinalResponse != "plan" || w.admitted() != "x" {
		t.Errorf("%+v, admitted %s, %v", res, w.admitted(), err)
	}
}

// TestPlanModeIsSeenByOneStepAtATime runs under the race detector: the set of
// tools changes while others look at the agent.
func TestPlanModeIsSeenByOneStepAtATime(t *testing.T) {
	var w *world
	llm := &play{next: []answer{reviews("p"), func(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
		return says("done")(ctx, req, sink)
	}}}
	w, _ = startPlan(t, newMemLog(), llm, picks(t, plan.LabelApprove, ""))
	stop := make(chan struct{})
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-stop:
				return
			default:
				w.planned()
				w.tools()
			}
		}
	}()
	w.planRun("x")
	close(stop)
	<-looked
	if w.names(1) != allTools {
		t.Errorf("tools %q", w.names(1))
	}
}
