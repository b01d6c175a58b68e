package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/code"
)

// subEvents is what the log says of calls and sub-calls, one word an event.
func (w *world) subEvents() string {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	var out []string
	for _, e := range w.log.events {
		var v struct {
			CallID, SubCallID, Content string
			Error                      *session.ToolError
			Message                    session.ToolMessage
		}
		if err := json.Unmarshal(e.Data, &v); err != nil {
			continue // of no interest
		}
		failed := ""
		if v.Error != nil {
			failed = " " + v.Error.Code
		}
		switch e.Type {
		case session.TypeToolCall:
			out = append(out, "call("+v.CallID+")")
		case session.TypePTCDispatchStart:
			out = append(out, "start("+v.SubCallID+")")
		case session.TypePTCDispatch:
			out = append(out, "end("+v.SubCallID+failed+")")
		case session.TypeToolResult:
			out = append(out, "result("+v.Message.ToolCallID+failed+")")
		}
	}
	return strings.ReplaceAll(strings.Join(out, " "), "c:ptc:", "")
}

// codeTool is a tool whose body dispatches.
func codeTool(body func(ctx context.Context, c tool.Call) tool.Result) fn {
	return fn{"code", tool.Traits{TopLevel: true}, body}
}

// dispatchAll begins the calls "name" in order and returns their results in that order.
func dispatchAll(ctx context.Context, c tool.Call, names ...string) []tool.Result {
	results := make([]tool.Result, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Add(1)
		c.Dispatch(ctx, name, "", func(r tool.Result) {
			results[i] = r
			wg.Done()
		})
	}
	wg.Wait()
	return results
}

func runs(names ...string) fn {
	return codeTool(func(ctx context.Context, c tool.Call) tool.Result {
		var out []string
		for _, r := range dispatchAll(ctx, c, names...) {
			out = append(out, r.Content)
		}
		return tool.Result{Content: strings.Join(out, "+")}
	})
}

func TestSubCallsAreLoggedBeforeTheirParentsResult(t *testing.T) {
	a, b := fn{"a", tool.Traits{}, ok("A")}, fn{"b", tool.Traits{}, ok("B")}
	w := start(t, newMemLog(), &play{next: []answer{calls("code:c"), says("done")}}, nil, runs("a", "b", "a"), a, b)
	w.run("x")
	if got, want := w.subEvents(), "call(c) start(1) end(1) start(2) end(2) start(3) end(3) result(c)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := w.heard(); !strings.HasSuffix(got, "t:A+B+A") {
		t.Errorf("model heard %s", got)
	}
}

// TestSubCallsHaveIDsOfTheirOwn: a model may give a call the id of a sub-call, before
// that is made and after.
func TestSubCallsHaveIDsOfTheirOwn(t *testing.T) {
	a := fn{"a", tool.Traits{Parallel: true}, ok("A")}
	called := func(id string) answer {
		return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
			return model.Response{Finish: model.FinishToolCalls, Calls: []session.Call{{ID: id, Name: "a", Arguments: "{}"}}}, nil
		}
	}
	w := start(t, newMemLog(), &play{next: []answer{called("c:ptc:1"), calls("code:c"), called("c:ptc:2"), says("done")}}, nil, runs("a", "a"), a)
	w.run("x")
	seen := map[string]bool{}
	for _, begun := range regexp.MustCompile(`(?:call|start)\((\w+)\)`).FindAllStringSubmatch(w.subEvents(), -1) {
		if seen[begun[1]] {
			t.Errorf("two calls have the id %s", begun[1])
		}
		seen[begun[1]] = true
	}
	if len(seen) != 5 || !seen["1"] || !seen["2"] || !seen["3"] { // of the model, and two of the code; c, and one that got a new id
		t.Errorf("ids %v", seen)
	}
}

func TestBadSubCallsAreToldToTheCodeAndLogged(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{calls("code:c"), says("done")}}, nil,
		runs("nosuch", "code", "boom"), fn{"boom", tool.Traits{}, func(context.Context, tool.Call) tool.Result { panic("oh") }})
	w.run("x")
	if got, want := w.subEvents(), "call(c) start(1) end(1 UNKNOWN_TOOL) start(2) end(2 NOT_FROM_CODE) start(3) end(3 INTERNAL) result(c)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestOnlyWhatIsHarmlessOverlapsInCode: each tool waits in the bubble until all
// that can have begun.
func TestOnlyWhatIsHarmlessOverlapsInCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running := map[string]int{}
		var seen []string
		free := make(chan struct{})
		one := func(name string, traits tool.Traits) fn {
			return fn{name, traits, func(context.Context, tool.Call) tool.Result {
				mu.Lock()
				running[name]++
				mu.Unlock()
				<-free
				mu.Lock()
				running[name]--
				mu.Unlock()
				return tool.Result{Content: name}
			}}
		}
		names := []string{"read", "ask", "write", "write", "read"}
		names = append(names, slices.Repeat([]string{"read"}, 11)...)
		w := start(t, newMemLog(), &play{next: []answer{calls("code:c"), says("done")}}, nil, runs(names...),
			one("read", tool.Traits{Parallel: true}), one("ask", tool.Traits{Person: true}), one("write", tool.Traits{}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.run("x")
		}()
		for range 6 {
			synctest.Wait()
			mu.Lock()
			seen = append(seen, fmt.Sprintf("%dr%da%dw", running["read"], running["ask"], running["write"]))
			n := running["read"] + running["ask"] + running["write"]
			mu.Unlock()
			for range n {
				free <- struct{}{}
				if n > 2 {
					break
				}
			}
		}
		if got, want := strings.Join(seen, " "), "1r1a0w 0r0a1w 0r0a1w 10r0a0w 10r0a0w 10r0a0w"; got != want {
			t.Errorf("running at once: %s, want %s", got, want)
		}
		close(free)
		<-done
		if got := w.subEvents(); !strings.HasPrefix(got, "call(c) start(1) start(2)") || !strings.Contains(got, "start(5) start(6)") || !strings.HasSuffix(got, ") result(c)") {
			t.Error(got)
		}
	})
}

func TestCancelEndsSubCallsBeforeTheirParent(t *testing.T) {
	var w *world
	wait := fn{"wait", tool.Traits{}, func(ctx context.Context, _ tool.Call) tool.Result {
		if err := w.Cancel(context.WithoutCancel(ctx), session.Cause{Kind: session.CauseUser}, true); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return tool.Errorf(tool.CodeAborted, "stopped")
	}}
	var got []tool.Result
	c := codeTool(func(ctx context.Context, c tool.Call) tool.Result {
		got = dispatchAll(ctx, c, "wait", "wait", "wait")
		return tool.Errorf(tool.CodeAborted, "stopped")
	})
	w = start(t, newMemLog(), &play{next: []answer{calls("code:c")}}, nil, c, wait)
	w.run("x")
	if got, want := w.subEvents(), "call(c) start(1) end(1 ABORTED) result(c ABORTED)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got[1].Code != session.CodeAbortedBefore || got[2].Code != session.CodeAbortedBefore {
		t.Errorf("those that waited: %+v", got[1:])
	}
}

// TestABodyThatReturnsEndsItsSubCalls: also one that panics, and what it
// dispatches afterwards is refused.
func TestABodyThatReturnsEndsItsSubCalls(t *testing.T) {
	begun := make(chan struct{}, 2)
	wait := fn{"wait", tool.Traits{Parallel: true}, func(ctx context.Context, _ tool.Call) tool.Result {
		begun <- struct{}{}
		<-ctx.Done()
		return tool.Errorf(tool.CodeAborted, "stopped")
	}}
	late := make(chan tool.Result)
	var kept tool.Call
	c := codeTool(func(ctx context.Context, c tool.Call) tool.Result {
		c.Dispatch(ctx, "wait", "", func(tool.Result) {})
		<-begun
		if kept.Dispatch != nil {
			kept.Dispatch(context.Background(), "wait", "", func(r tool.Result) { late <- r })
			if r := <-late; r.Code != session.CodeAbortedBefore {
				t.Errorf("%+v", r)
			}
			panic("oh")
		}
		kept = c
		return tool.Result{Content: "early"}
	})
	w := start(t, newMemLog(), &play{next: []answer{calls("code:c", "code:d"), says("done")}}, nil, c, wait)
	w.run("x")
	if got, want := w.subEvents(), "call(c) start(1) end(1 ABORTED) result(c) call(d) start(d:ptc:1) end(d:ptc:1 ABORTED) result(d INTERNAL)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAQuestionFromCodeIsLoggedTheMomentItSettles(t *testing.T) {
	var w *world
	rested := 0
	ask := fn{"ask", tool.Traits{Person: true}, func(_ context.Context, c tool.Call) tool.Result {
		r := tool.Result{Content: "pending", Unanswered: c.ID}
		if err := c.Commit(r); err != nil {
			t.Error(err)
		}
		if got := w.subEvents(); !strings.HasSuffix(got, "end(1)") || w.log.durable != len(w.log.events) {
			t.Errorf("%s, %d of %d on disk", got, w.log.durable, len(w.log.events))
		}
		if c.Commit(r) == nil {
			t.Error("commits twice")
		}
		if c.Dispatch != nil {
			t.Error("a sub-call can make sub-calls")
		}
		return r
	}}
	c := codeTool(func(ctx context.Context, c tool.Call) tool.Result {
		ctx = tool.WithRest(ctx, func() func() { rested++; return func() { rested += 10 } })
		return dispatchAll(ctx, c, "ask")[0]
	})
	change := fn{"change", tool.Traits{}, ok("changed")}
	w = start(t, newMemLog(), &play{next: []answer{calls("code:c", "change:d"), says("done")}}, nil, runs2(c), ask, change)
	w.run("x")
	// What stands beside the code is not held back: it asked nobody.
	if got, want := w.subEvents(), "call(c) start(1) end(1) result(c) call(d) result(d)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if rested != 11 {
		t.Errorf("the clock of the code rests %d", rested)
	}
}

// runs2 keeps only the text of a result, as code does.
func runs2(f fn) fn {
	body := f.run
	f.run = func(ctx context.Context, c tool.Call) tool.Result { return tool.Result{Content: body(ctx, c).Content} }
	return f
}

func TestResultsOfSubCallsAreFitAndWithoutSecrets(t *testing.T) {
	long := fn{"long", tool.Traits{}, ok("KEY" + strings.Repeat("x", 2*tool.MaxContent))}
	seen := fn{"seen", tool.Traits{}, func(context.Context, tool.Call) tool.Result {
		return tool.Result{Meta: &session.ToolMeta{Observed: []session.Observed{{Path: "/a", Hash: "h"}}}}
	}}
	c := codeTool(func(ctx context.Context, c tool.Call) tool.Result {
		r := dispatchAll(ctx, c, "long", "seen")
		if n := len(r[0].Content); n > tool.MaxContent || !strings.HasPrefix(r[0].Content, "[key]") {
			t.Errorf("%d bytes, %.10s", n, r[0].Content)
		}
		return tool.Result{}
	})
	w := start(t, newMemLog(), &play{next: []answer{calls("code:c"), says("done")}}, func(o *Options) {
		o.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "KEY", "[key]")) }
	}, c, long, seen)
	w.run("x")
	for _, e := range w.log.events {
		if strings.Contains(string(e.Data), "KEY") {
			t.Errorf("%s holds the key", e.Type)
		}
	}
	w.View(func(s *session.State) {
		if len(s.Observed) != 1 {
			t.Errorf("what the code has seen of files: %+v", s.Observed)
		}
	})
}

func TestAFailedLogStopsBeforeTheSubCallThatItGuards(t *testing.T) {
	var ran bool
	a := fn{"a", tool.Traits{Parallel: true}, func(context.Context, tool.Call) tool.Result { ran = true; return tool.Result{} }}
	try := func(fail func(string, int) error) (*memLog, error) {
		ran = false
		log := newMemLog()
		log.fail = fail
		w := start(t, log, &play{next: []answer{calls("code:c"), says("done")}}, nil, runs("a"), a)
		_, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Leave: true}, nil)
		return log, err
	}
	whole, err := try(nil)
	if err != nil || !ran {
		t.Fatal(err)
	}
	for n := 1; n <= whole.ops; n++ {
		log, err := try(func(_ string, i int) error {
			if i >= n {
				return errDisk
			}
			return nil
		})
		if !errors.Is(err, errDisk) {
			t.Fatalf("op %d: %v", n, err)
		}
		started := slices.ContainsFunc(log.events[:log.durable], func(e session.Event) bool { return e.Type == session.TypePTCDispatchStart })
		if ran && !started {
			t.Errorf("op %d: the sub-call ran before its start was on disk", n)
		}
	}
}

// asks is ask_user_question of timed mode with a person who never answers, but
// for questions of the header "now".
type asks struct{ fn }

func newAsks() asks {
	return asks{fn{session.AskTool, tool.Traits{Person: true}, func(_ context.Context, c tool.Call) tool.Result {
		text, err := session.PendingText(c.ID, "later")
		if strings.Contains(string(c.Arguments), `"now"`) {
			text, err = session.BatchText([]session.Answer{{ID: "q", Custom: "full answer"}})
		}
		if err != nil {
			return tool.Errorf(tool.CodeInternal, "%v", err)
		}
		r := tool.Result{Content: text}
		if err := c.Commit(r); err != nil {
			return tool.Errorf("LOG_WRITE", "%v", err)
		}
		return r
	}}}
}

func (a asks) Spec() session.ToolSpec {
	s := a.fn.Spec()
	s.Parameters = json.RawMessage(`{"type":"object","properties":{"questions":{"type":"array"},"timeout":{"type":"number"}}}`)
	return s
}

// TestCodeCutOffAnywhereResumesSoundly cuts the log of a run with sub-calls after
// every event: it can be gone on with, its question is answerable under the
// sub-call's id, and the model learns what the code had done and been told.
func TestCodeCutOffAnywhereResumesSoundly(t *testing.T) {
	js := `const one = await tools.echo({}); const now = await tools.ask_user_question({questions: [{id: "q", header: "now", question: "Now?"}]});` +
		`const q = await tools.ask_user_question({questions: [{id: "q", question: "Sure?"}]}); await tools.change({}); return [one, now.answers[0].custom, q.pending]`
	args, err := json.Marshal(map[string]string{"code": js, "description": "d"})
	if err != nil {
		t.Fatal(err)
	}
	call := func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Finish: model.FinishToolCalls, Calls: []session.Call{{ID: "c", Name: code.Name, Arguments: string(args)}}}, nil
	}
	tools := []tool.Tool{code.New(), newAsks(), fn{"echo", tool.Traits{Parallel: true}, ok("e")}, fn{"change", tool.Traits{}, ok("changed")}}
	wide := func(o *Options) { o.Window = 100_000 }
	w := start(t, newMemLog(), &play{next: []answer{call, says("done")}}, wide, tools...)
	w.run("x")
	if got, want := w.subEvents(), "call(c) start(1) end(1) start(2) end(2) start(3) end(3) start(4) end(4) result(c)"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := w.heard(); !strings.HasSuffix(got, `t:return: ["e","full answer",true]`) {
		t.Fatalf("model heard %s", got)
	}
	for cut := 2; cut <= len(w.log.events); cut++ {
		seen := map[string]bool{}
		for _, e := range w.log.events[:cut] {
			var v session.PTCStart
			if err := json.Unmarshal(e.Data, &v); err == nil && v.SubCallID != "" {
				seen[e.Type+v.SubCallID] = true
			}
			seen[e.Type] = true
		}
		r := start(t, newMemLog(slices.Clone(w.log.events[:cut])...), &play{next: []answer{says("again"), says("again")}}, wide, tools...)
		r.View(func(s *session.State) {
			q, found := s.Questions.Lookup("c:ptc:3")
			if asked := seen[session.TypePTCDispatchStart+"c:ptc:3"]; found != asked || found && q.State != session.QuestionContinued {
				t.Errorf("cut at %d: asked %v, but the question is %+v", cut, asked, q)
			}
		})
		if _, end := r.run("go on"); end.Kind != "completed" {
			t.Fatalf("cut at %d: %+v", cut, end)
		}
		heard := r.heard()
		if !seen[session.TypeToolCall] || seen[session.TypeToolResult] {
			continue
		}
		for want, known := range map[string]bool{
			"TOOL_OUTCOME_UNKNOWN":                        true,
			"c:ptc:1: echo {}":                            seen[session.TypePTCDispatchStart+"c:ptc:1"],
			"had ended:":                                  seen[session.TypePTCDispatch+"c:ptc:1"],
			`"custom":"full answer"`:                      seen[session.TypePTCDispatch+"c:ptc:2"],
			"c:ptc:3, asked with":                         seen[session.TypePTCDispatchStart+"c:ptc:3"],
			"not known what they did:\n- c:ptc:4: change": seen[session.TypePTCDispatchStart+"c:ptc:4"] && !seen[session.TypePTCDispatch+"c:ptc:4"],
		} {
			if strings.Contains(heard, want) != known {
				t.Errorf("cut at %d: %q told %v, want %v, in %s", cut, want, !known, known, heard)
			}
		}
	}
}
