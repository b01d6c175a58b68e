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
)

func TestSteeringAndALateAnswerJoinARound(t *testing.T) {
	var w *world
	join := fn{"f", tool.Traits{}, func(ctx context.Context, _ tool.Call) tool.Result {
		if _, err := w.Steer(ctx, text("mind the gap"), user()); err != nil {
			t.Error(err)
		}
		src := session.Source{Kind: session.SourceQuestionReply, CallID: "q", Outcome: "answered"}
		if _, err := w.SteerIf(ctx, src, func(*session.State) (string, error) { return "late", nil }); err != nil {
			t.Error(err)
		}
		if _, err := w.Followup(ctx, text("and then"), user()); err != nil {
			t.Error(err)
		}
		return tool.Result{Content: "r"}
	}}
	llm := &play{next: []answer{calls("f:c"), says("one"), says("then"), says("two")}}
	w = startGoal(t, newMemLog(), llm, nil, join)
	res, end := w.pursue(GoalStart{Objective: "o", MaxRounds: 2})
	if w.admitted() != "1 mind the gap late and then 2" || res.FinalResponse != "two" || res.Steps != 4 || end.Kind != "completed" {
		t.Errorf("admitted %s, %+v %+v", w.admitted(), res, end)
	}
	if int(res.Events.To) != len(w.log.events)-1 {
		t.Errorf("the interval ends at %d of %d", res.Events.To, len(w.log.events)-1)
	}
}

// TestACrashAtAnyEventOfAGoal: whatever the log was cut after, a resume counts
// what was admitted, starts no round by itself, and goes on when it is told to.
func TestACrashAtAnyEventOfAGoal(t *testing.T) {
	llm := &play{}
	whole := startGoal(t, newMemLog(), llm, nil)
	llm.next = []answer{says("task"), calls("get_goal:a"), says("one"), whole.updates("c", "edit", `,"objective":"p"`), says("two"), whole.updates("d", "complete", ""), says("three")}
	if _, _, err := whole.Run(t.Context(), RunOptions{Input: Task("x"), Goal: &GoalStart{Objective: "o", MaxRounds: 9}}, nil); err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut <= len(whole.log.events); cut++ {
		log := func() *memLog { return newMemLog(slices.Clone(whole.log.events[:cut])...) }

		w := startGoal(t, log(), &play{next: []answer{says("a"), says("b"), says("c")}}, nil)
		before := w.goal()
		if _, end := w.run("y"); end.Kind != "completed" {
			t.Fatalf("cut at %d: %+v", cut, end)
		}
		if g := w.goal(); g != before || w.inbox() != 0 {
			t.Errorf("cut at %d: the goal went on by itself: %+v, before %+v", cut, g, before)
		}

		if before.ID == "" || before.Phase == session.GoalComplete {
			continue
		}
		w = startGoal(t, log(), &play{}, nil)
		w.llm.next = []answer{w.updatesIfRound("z1"), w.updatesIfRound("z2"), says("end"), says("end"), says("end")}
		if _, end := w.pursue(GoalStart{}); end.Kind != "completed" {
			t.Fatalf("cut at %d, taken up: %+v", cut, end)
		}
		var rounds []string
		for _, word := range strings.Fields(w.admitted()) {
			if word != "x" {
				rounds = append(rounds, word)
			}
		}
		for i, r := range rounds {
			if r != fmt.Sprint(i+1) {
				t.Errorf("cut at %d: rounds %v are not counted one by one", cut, rounds)
			}
		}
		if g := w.goal(); g.Phase != session.GoalComplete || g.Rounds != len(rounds) {
			t.Errorf("cut at %d: %+v, rounds %v", cut, g, rounds)
		}
	}
}

// updatesIfRound completes the goal in a round, and says something in any other turn.
func (w *world) updatesIfRound(id string) answer {
	return func(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
		if !strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Round") {
			return says("ok")(ctx, req, sink)
		}
		return w.updates(id, "complete", "")(ctx, req, sink)
	}
}

func TestAFailedLogEndsAGoal(t *testing.T) {
	script := func() *play { return &play{next: []answer{says("one"), calls("get_goal:a"), says("two")}} }
	w := startGoal(t, newMemLog(), script(), nil)
	w.pursue(GoalStart{Objective: "o", MaxRounds: 2})
	ops := w.log.ops
	for n := 1; n <= ops; n++ {
		log := newMemLog()
		log.fail = func(_ string, i int) error {
			if i >= n {
				return errDisk
			}
			return nil
		}
		w := startGoal(t, log, script(), nil)
		_, _, err := w.Run(t.Context(), RunOptions{Goal: &GoalStart{Objective: "o", MaxRounds: 2}, Leave: true}, nil)
		if !errors.Is(err, errDisk) {
			t.Fatalf("op %d: %v", n, err)
		}
		if w.Status() != Idle {
			t.Errorf("op %d: not idle", n)
		}
	}
}

// TestMessagesThatRaceWithRounds: each that was accepted is admitted once, the
// rounds are counted one by one, and no round is claimed while a person's message waits.
func TestMessagesThatRaceWithRounds(t *testing.T) {
	for range 60 {
		llm := &play{}
		for range 40 {
			llm.next = append(llm.next, says("ok"))
		}
		w := startGoal(t, newMemLog(), llm, func(o *Options) { o.MaxSteps = 100 })
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		_, end, err := w.Run(t.Context(), RunOptions{Goal: &GoalStart{Objective: "o", MaxRounds: 6}, Leave: true}, func(string) {
			for i := range 9 {
				send := []func(context.Context, []session.Block, session.Source) (string, error){w.Followup, w.Steer, w.Inject}[i%3]
				wg.Go(func() {
					if _, err := send(context.Background(), text("m"), user()); err == nil {
						mu.Lock()
						accepted++
						mu.Unlock()
					} else if !errors.Is(err, ErrLeaving) {
						t.Error(err)
					}
				})
			}
		})
		if err != nil || end.Kind != "completed" {
			t.Fatalf("%+v %v", end, err)
		}
		wg.Wait()
		words := strings.Fields(w.admitted())
		rounds := slices.DeleteFunc(slices.Clone(words), func(s string) bool { return s == "m" })
		if strings.Join(rounds, "") != "123456" || len(words)-len(rounds)+w.inbox() != accepted {
			t.Fatalf("admitted %v, queued %d, accepted %d", words, w.inbox(), accepted)
		}
		var in session.Inbox
		for _, e := range w.log.events {
			if e.Type == session.TypeInboxSpliced {
				var s session.InboxSpliced
				if err := json.Unmarshal(e.Data, &s); err != nil {
					t.Fatal(err)
				}
				q := in.Queued(session.NextTurn)
				if s.Target == session.NextTurn && s.RemovedCount > 0 && q[s.Start].Source.Kind == session.SourceGoal && len(q) > 1 {
					t.Fatal("a round is claimed while a message waits")
				}
			}
			if err := in.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
	}
}
