package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/code"
	"deepseek/internal/tool/plan"
)

// asker is who runs code that asks: how its calls ask, and whose session it is.
type asker struct {
	name  string
	timed bool
	of    session.Header
}

var askers = []asker{
	{"timed", true, session.Header{}},
	{"legacy", false, session.Header{}},
	{"sub-agent", true, session.Header{Origin: session.OriginSubagent, ParentSession: "p"}},
}

func (who asker) root() bool { return who.of.Origin == "" }

const longAnswer = "the whole of a long answer, "

// codeWorld is an agent whose code asks through the real service. A person
// answers the question "now" at length, closes "later" where it blocks, and does
// at "open" what at says.
func (who asker) codeWorld(t *testing.T, js string, at func(w *world), tools ...tool.Tool) *world {
	t.Helper()
	timeout := ""
	if who.timed {
		timeout = ", timeout: 5"
	}
	js = `const ask = async id => { try { return await tools.ask_user_question({questions: [{id, question: id + "?"}]` + timeout + `}) } catch (e) { return e.code } };` +
		"await ask('now'); await ask('later'); " + js
	args, err := json.Marshal(map[string]string{"code": js, "description": "d"})
	if err != nil {
		t.Fatal(err)
	}
	service := question.New("s1", question.SystemClock{})
	var w *world
	tools = append(tools, code.New(), question.NewTool(service, question.ToolOptions{
		Timed: who.timed, Default: 5, Caller: func() question.Caller { return question.Caller{Live: true, Delegated: !who.root()} },
	}))
	w = start(t, newMemLog(), &play{next: []answer{callsTool("c", code.Name, string(args)), says("done"), says("again"), says("more")}}, nil, tools...)
	w.View(func(st *session.State) { st.Of(who.of) })
	service.Bind(w.Agent)
	t.Cleanup(service.Provide(func(question.Card) bool { return true }))
	t.Cleanup(service.Watch(func(ev question.Event) {
		if ev.Type != question.Opened {
			return
		}
		id := ev.Card.Questions[0].ID
		switch {
		case id == "open":
			go at(w)
			return
		case id != "now" && who.timed:
			return
		}
		go func() {
			claim, ok := service.Attach(ev.Card.CallID)
			if !ok {
				t.Error("nothing to claim")
				return
			}
			settle := func() (bool, error) { return claim.Reject(context.Background(), question.CodeCancelled) }
			if id == "now" {
				settle = func() (bool, error) {
					return claim.Respond(context.Background(), []session.Answer{{ID: id, Custom: strings.Repeat(longAnswer, 40)}})
				}
			}
			if ok, err := settle(); !ok || err != nil {
				t.Errorf("%s: %v %v", id, ok, err)
			}
		}()
	}))
	return w
}

// checkQuestionsTold: a result of code that did not come to its end names every
// question that was asked, gives each answer in full, and promises one still to
// come just where the log says that it can. It returns how many it promises.
func checkQuestionsTold(t *testing.T, where, text string, events []session.Event, st *session.State) (promised int) {
	t.Helper()
	ended := map[string]session.PTC{}
	var asked []string
	for _, e := range events {
		var v session.PTC
		if e.Type != session.TypePTCDispatch && e.Type != session.TypePTCDispatchStart {
			continue
		}
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.Name != session.AskTool:
		case e.Type == session.TypePTCDispatch:
			ended[v.SubCallID] = v
		default:
			asked = append(asked, v.SubCallID)
		}
	}
	for _, id := range asked {
		_, line, found := strings.Cut(text, "\n- "+id+", asked with ")
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("%s: %s is not named in %s", where, id, text)
			continue
		}
		if _, ok := session.ParseBatch(ended[id].Content); ok && !strings.HasSuffix(line, ended[id].Content) {
			t.Errorf("%s: the answer to %s is not told in full: %s", where, id, line)
		}
		q, _ := st.Questions.Lookup(id)
		can := q.State == session.QuestionContinued
		says := strings.Contains(line, "stays answerable") || strings.Contains(line, `"pending":true`)
		if can != says {
			t.Errorf("%s: %s is %q, and told as: %s", where, id, q.State, line)
		}
		if says {
			promised++
		}
	}
	return promised
}

// TestHoweverCodeEndsItsAnswersAreTold goes through the ways in which a call of
// run_code ends, for everybody whose code may ask, and then cuts each log after
// every event, as a crash would.
func TestHoweverCodeEndsItsAnswersAreTold(t *testing.T) {
	cancel := func(c session.Cause) func(*world) {
		return func(w *world) {
			if err := w.Cancel(context.Background(), c, true); err != nil {
				w.t.Error(err)
			}
		}
	}
	user := cancel(session.Cause{Kind: session.CauseUser})
	for _, c := range []struct {
		name, js string
		code     string       // "" = it came to its end
		at       func(*world) // what happens at the question "open" and in tools.here
		only     string       // the asker, "" = all
		slow     bool         // under the race detector it is left out
	}{
		{name: "return", js: `return "fine"`},
		{name: "throw", js: `throw new Error("later")`, code: code.CodeError},
		{name: "unhandled", js: `Promise.reject(new Error("lost")); return 1`, code: code.CodeError},
		{name: "a tool fails", js: `await tools.fail({})`, code: code.CodeError},
		{name: "no JSON", js: `return 1n`, code: code.CodeError},
		{name: "waits for nothing", js: `await new Promise(() => {})`, code: code.CodeError},
		{name: "memory", js: `const x = []; for (;;) x.push(new Uint8Array(5e7))`, code: code.CodeMemory, only: "timed"},
		{name: "output", js: `console.log("x".repeat(7e7))`, code: code.CodeOutput, only: "timed", slow: true},
		{name: "too many sub-calls", js: `for (;;) await tools.echo({})`, code: code.CodeError, only: "timed", slow: true},
		{name: "wall time", js: `await tools.hang({})`, code: code.CodeTimeout},
		{name: "wall time, and the question is asked again", js: `await ask("later"); await tools.hang({})`, code: code.CodeTimeout},
		{name: "cancel in a tool", js: `await tools.here({}); await tools.hang({})`, code: tool.CodeAborted, at: user},
		{name: "cancel at a question", js: `await ask("open"); await tools.here({}); await tools.hang({})`, code: tool.CodeAborted, at: user},
		{name: "cancel at two questions, caught", js: `try { await Promise.all([ask("open"), ask("later2")]) } catch {} return 1`, code: tool.CodeAborted, at: user, only: "timed"},
		{name: "cancel by the parent", js: `await ask("open"); await tools.here({}); await tools.hang({})`, code: tool.CodeAborted, at: cancel(session.Cause{Kind: session.CauseParent})},
		{name: "the time of the run", js: `await ask("open"); await tools.here({}); await tools.hang({})`, code: tool.CodeAborted, at: cancel(session.Cause{Kind: session.CauseHook, Hook: "duration"})},
		{name: "dispose", js: `await ask("open"); await tools.here({}); await tools.hang({})`, code: tool.CodeAborted, at: func(w *world) {
			if err := w.Dispose(context.Background()); err != nil {
				w.t.Error(err)
			}
		}},
	} {
		for _, who := range askers {
			if c.only != "" && c.only != who.name || c.slow && raceDetector {
				continue
			}
			t.Run(c.name+"/"+who.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w *world
					w = who.codeWorld(t, c.js, c.at,
						fn{"echo", tool.Traits{Parallel: true}, ok("e")},
						fn{"fail", tool.Traits{}, func(context.Context, tool.Call) tool.Result { return tool.Errorf("NO", "no") }},
						fn{"here", tool.Traits{}, func(context.Context, tool.Call) tool.Result { go c.at(w); return tool.Result{} }},
						fn{"hang", tool.Traits{}, func(ctx context.Context, _ tool.Call) tool.Result {
							<-ctx.Done()
							return tool.Errorf(tool.CodeAborted, "stopped")
						}})
					w.run("x")
					events := slices.Clone(w.log.events)
					text, failed := resultOf(t, events, "c")
					if failed != c.code {
						t.Fatalf("ended %q, want %q: %.300s", failed, c.code, text)
					}
					w.View(func(st *session.State) {
						if c.code == "" {
							if strings.Contains(text, "asked with") {
								t.Errorf("code that came to its end told what it chose to: %s", text)
							}
							return
						}
						told := checkQuestionsTold(t, "live", text, events, st)
						if want := len(st.Questions.Active()); told < want {
							t.Errorf("%d of %d questions that wait are told: %s", told, want, text)
						}
						if answered := strings.Contains(text, strings.Repeat(longAnswer, 40)); answered != who.root() {
							t.Errorf("the answer is told %v: %s", answered, text)
						}
					})
					if len(events) < 200 {
						who.cutAnywhere(t, events)
					}
				})
			})
		}
	}
}

func resultOf(t *testing.T, events []session.Event, callID string) (text, failed string) {
	t.Helper()
	for _, e := range events {
		if e.Type != session.TypeToolResult {
			continue
		}
		var r session.ToolResult
		if err := json.Unmarshal(e.Data, &r); err != nil {
			t.Fatal(err)
		}
		if r.Message.ToolCallID == callID {
			if r.Error != nil {
				failed = r.Error.Code
			}
			return r.Message.Content, failed
		}
	}
	t.Fatalf("call %s has no result", callID)
	return "", ""
}

// cutAnywhere repairs the log cut after each event.
func (who asker) cutAnywhere(t *testing.T, events []session.Event) {
	t.Helper()
	for cut := 1; cut <= len(events); cut++ {
		var st session.State
		st.Of(who.of)
		for _, e := range events[:cut] {
			if err := st.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		closers, err := st.Repair("s1")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(closers, func(e session.Event) bool { return e.Type == session.TypeToolResult }) {
			continue
		}
		text, _ := resultOf(t, closers, "c")
		checkQuestionsTold(t, fmt.Sprint("cut at ", cut), text, events[:cut], &st)
	}
}

// TestAQuestionCutOffAnywhereIsPromisedOnlyWhereItWaits is about a question that the model asks itself.
func TestAQuestionCutOffAnywhereIsPromisedOnlyWhereItWaits(t *testing.T) {
	for _, who := range askers {
		t.Run(who.name, func(t *testing.T) {
			service := question.New("s1", question.SystemClock{})
			var w *world
			ctx, cancel := context.WithCancelCause(t.Context())
			ask := question.NewTool(service, question.ToolOptions{
				Timed: who.timed, Default: -1, Caller: func() question.Caller { return question.Caller{Live: true, Delegated: !who.root()} },
			})
			w = start(t, newMemLog(), &play{next: []answer{callsTool("q", session.AskTool, `{"questions":[{"id":"a","question":"A?"}]}`), says("done")}}, nil, ask)
			w.View(func(st *session.State) { st.Of(who.of) })
			service.Bind(w.Agent)
			t.Cleanup(service.Provide(func(question.Card) bool { return true }))
			t.Cleanup(service.Watch(func(ev question.Event) {
				if ev.Type == question.Opened {
					cancel(&Canceled{session.Cause{Kind: session.CauseUser}})
				}
			}))
			if _, _, err := w.Run(ctx, RunOptions{Input: Task("x")}, nil); err != nil {
				t.Fatal(err)
			}
			for cut := 1; cut <= len(w.log.events); cut++ {
				var st session.State
				st.Of(who.of)
				for _, e := range w.log.events[:cut] {
					if err := st.Apply(e); err != nil {
						t.Fatal(err)
					}
				}
				closers, err := st.Repair("s1")
				if err != nil {
					t.Fatal(err)
				}
				events := append(slices.Clone(w.log.events[:cut]), closers...)
				if !slices.ContainsFunc(events, func(e session.Event) bool { return e.Type == session.TypeToolResult }) {
					continue
				}
				text, _ := resultOf(t, events, "q")
				q, _ := st.Questions.Lookup("q")
				if says := strings.Contains(text, "stays answerable"); says != (q.State == session.QuestionContinued) {
					t.Errorf("cut at %d: the question is %q, and told as: %s", cut, q.State, text)
				}
			}
		})
	}
}

// TestWhatIsToldOfQuestionsIsNeverCut: not by the limit of results, and not when the tool panics.
func TestWhatIsToldOfQuestionsIsNeverCut(t *testing.T) {
	for name, body := range map[string]func() tool.Result{
		"much output": func() tool.Result { return tool.Errorf("CODE_TIMEOUT", "%s", strings.Repeat("x", 3*tool.MaxContent)) },
		"a panic":     func() tool.Result { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			c := codeTool(func(ctx context.Context, c tool.Call) tool.Result {
				done := make(chan struct{})
				c.Dispatch(ctx, session.AskTool, `{"questions":[{"id":"q","header":"now","question":"Now?"}]}`, func(tool.Result) { close(done) })
				<-done
				return body()
			})
			w := start(t, newMemLog(), &play{next: []answer{calls("code:c"), says("done")}}, func(o *Options) {
				o.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "full", "[key]")) }
			}, c, newAsks())
			w.run("x")
			if got := w.heard(); !strings.HasSuffix(got, `{"answers":[{"id":"q","selected":[],"custom":"[key] answer"}]}`) {
				t.Errorf("%.200s … %s", got, got[max(0, len(got)-300):])
			}
		})
	}
}

// TestWhatJoinsWhileACallWorks sends a steering message, a late answer and a
// message of its own while one call works, for each tool that owns or waits. The
// run tells of all of it as one interval: it is nobody's answer alone.
func TestWhatJoinsWhileACallWorks(t *testing.T) {
	for _, c := range []struct {
		name   string
		calls  answer
		plan   bool
		goal   *GoalStart
		result string // what the call reports, of itself alone
		after  []answer
		final  string
		steps  int
	}{
		{name: "delegate", calls: callsTool("c", "delegate", `{}`), result: "child says: the child's own answer; completed, 1 step", final: "to the message", steps: 4},
		{name: "run_code", calls: callsTool("c", code.Name, `{"code":"return await tools.work({})","description":"d"}`), result: `return: "worked"`, final: "to the message", steps: 4},
		{name: "plan review", calls: reviews("c"), plan: true, result: "The user approved the plan. Plan mode is over and all tools are there from now on: carry the plan out.", final: "to the message", steps: 4},
		{
			name: "goal", calls: callsTool("c", "work", `{}`), goal: &GoalStart{Objective: "o", MaxRounds: 1}, result: "worked",
			// The message is served before the round that was owed.
			after: []answer{says("to the round")}, final: "to the round", steps: 5,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := question.New("s1", question.SystemClock{})
			var w *world
			var once sync.Once
			join := func() {
				once.Do(func() {
					user := session.Source{Kind: session.SourceUser}
					if _, err := w.Followup(t.Context(), text("MESSAGE"), user); err != nil {
						t.Error(err)
					}
					if _, err := w.Steer(t.Context(), text("STEER"), user); err != nil {
						t.Error(err)
					}
					if ok, err := service.Answer(t.Context(), "q", []session.Answer{{ID: "a", Custom: "LATE"}}); !ok || err != nil {
						t.Errorf("the late answer: %v %v", ok, err)
					}
				})
			}
			child := func(ctx context.Context, _ tool.Call) tool.Result {
				join()
				kid := start(t, newMemLog(), &play{next: []answer{says("the child's own answer")}}, func(o *Options) { o.SessionID = "kid" })
				res, end, err := kid.Run(ctx, RunOptions{Input: Task("part")}, nil)
				if err != nil {
					t.Error(err)
				}
				return tool.Result{Content: fmt.Sprintf("child says: %s; %s, %d step", res.FinalResponse, end.Kind, res.Steps)}
			}
			work := fn{"work", tool.Traits{}, func(context.Context, tool.Call) tool.Result { join(); return tool.Result{Content: "worked"} }}
			ask := newAsks()
			tools := []tool.Tool{ask, work, code.New(), fn{"delegate", tool.Traits{}, child}}
			llm := &play{next: append([]answer{callsTool("q", session.AskTool, `{"questions":[{"id":"a","question":"A?"}]}`), c.calls, says("to the steering"), says("to the message")}, c.after...)}
			w = start(t, newMemLog(), llm, func(o *Options) {
				all, err := tool.NewRegistry(tools...)
				if err != nil {
					t.Fatal(err)
				}
				o.PlanTools, err = plan.Offer(all, plan.Env{
					Ask:    service.Ask,
					Active: func() bool { return w.planned() },
					Leave:  func(ctx context.Context) error { return w.EndPlan(ctx) },
				})
				if err != nil {
					t.Fatal(err)
				}
			}, tools...)
			service.Bind(w.Agent)
			t.Cleanup(service.Provide(func(question.Card) bool { return true }))
			t.Cleanup(service.Watch(func(ev question.Event) {
				if ev.Type != question.Opened {
					return
				}
				go func() {
					join()
					claim, ok := service.Attach(ev.Card.CallID)
					if !ok {
						t.Error("nothing to claim")
						return
					}
					picks(t, "approve", "")(claim)
				}()
			}))
			res, end, err := w.Run(t.Context(), RunOptions{Input: Task("TASK"), Plan: c.plan, Goal: c.goal}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := resultOf(t, w.log.events, "c"); got != c.result {
				t.Errorf("the call reports %q, want %q", got, c.result)
			}
			if res.FinalResponse != c.final || end.Kind != session.EndCompleted || res.Steps != c.steps || res.Usage.InputTokens != int64(c.steps-2) {
				t.Errorf("the run tells %+v, %+v", res, end)
			}
			want := "TASK STEER LATE MESSAGE"
			if c.goal != nil {
				want += " round"
			}
			if got := entered(t, w.log.events); got != want {
				t.Errorf("entered %s, want %s", got, want)
			}
			if w.log.events[res.Events.From].Type != session.TypeInboxSpliced || res.Events.From > 2 || res.Events.To != int64(len(w.log.events)-1) {
				t.Errorf("the interval is %+v of %d events", res.Events, len(w.log.events))
			}
			w.View(func(st *session.State) {
				if q, _ := st.Questions.Lookup("q"); q.State != session.QuestionSettled || !q.Late {
					t.Errorf("the question is %+v", q)
				}
			})
		})
	}
}

// entered is the users' messages of a log in their order, one word each.
func entered(t *testing.T, events []session.Event) string {
	t.Helper()
	var out []string
	for _, e := range events {
		if e.Type != session.TypeUserMessage {
			continue
		}
		var m session.UserMessage
		if err := json.Unmarshal(e.Data, &m); err != nil {
			t.Fatal(err)
		}
		switch word := session.TextOf(m.Content); {
		case m.Source.Kind == session.SourceGoal:
			out = append(out, "round")
		case m.Source.Kind == session.SourceQuestionReply && strings.Contains(word, "LATE"):
			out = append(out, "LATE")
		default:
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}
