package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestOneTurn(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("hello")}}, nil)
	res, end := w.run("hi")
	w.wantTypes(0, `session/settings receipt turn/start claim step/start user/message header context assistant/message step/end end(completed)`)
	if res.FinalResponse != "hello" || *res.FinishReason != "completed" || end.Kind != "completed" || res.MessageID == nil || res.Steps != 1 {
		t.Errorf("%+v", res)
	}
	if res.Events != (session.Range{From: 1, To: 10}) {
		t.Errorf("the interval is %+v, want from the receipt to the last event", res.Events)
	}
	if w.Status() != Idle {
		t.Error("not idle after the run")
	}
}

func TestResultsAreLoggedInTheModelsOrder(t *testing.T) {
	second := make(chan struct{})
	slow := fn{"slow", tool.Traits{Parallel: true}, func(context.Context, tool.Call) tool.Result { <-second; return tool.Result{Content: "slow"} }}
	quick := fn{"quick", tool.Traits{Parallel: true}, func(context.Context, tool.Call) tool.Result { close(second); return tool.Result{Content: "quick"} }}
	w := start(t, newMemLog(), &play{next: []answer{calls("slow:a", "quick:b"), says("done")}}, nil, slow, quick)
	w.run("x")
	w.wantTypes(8, `assistant/message call(a) call(b) result(a) result(b) step/end step/start assistant/message step/end end(completed)`)
	if got, want := w.heard(), "u:x | a: | t:slow | t:quick"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
}

func TestABarrierRunsAlone(t *testing.T) {
	var mu sync.Mutex
	running := 0
	one := func(name string, parallel bool) fn {
		return fn{name, tool.Traits{Parallel: parallel}, func(context.Context, tool.Call) tool.Result {
			mu.Lock()
			running++
			if !parallel && running != 1 {
				t.Error("a barrier overlaps")
			}
			mu.Unlock()
			mu.Lock()
			running--
			mu.Unlock()
			return tool.Result{Content: name}
		}}
	}
	w := start(t, newMemLog(), &play{next: []answer{calls("p:1", "p:2", "b:3", "p:4", "b:5", "b:6"), says("done")}}, nil, one("p", true), one("b", false))
	w.run("x")
	if got := w.types(9); !strings.Contains(got, "result(2) call(3) result(3) call(4) result(4) call(5) result(5) call(6) result(6) step/end") {
		t.Error(got)
	}
}

func TestACallWithBadArgumentsDoesNotPartThoseAroundIt(t *testing.T) {
	for name, traits := range map[string]tool.Traits{"questions": {Person: true}, "parallel": {Parallel: true}} {
		t.Run(name, func(t *testing.T) {
			last := make(chan struct{})
			f := fn{"f", traits, func(ctx context.Context, c tool.Call) tool.Result {
				if c.Waiting(); c.ID == "c" {
					close(last)
				}
				select {
				case <-last:
				case <-time.After(time.Minute):
					t.Error("the first holds the last up")
				}
				return tool.Result{}
			}}
			w := start(t, newMemLog(), &play{next: []answer{calls("f:a", "f:b:[]", "f:c"), says("done")}}, nil, f)
			w.run("x")
			w.wantTypes(9, `call(a) call(b) call(c) result(a) result(b INVALID_ARGUMENTS) result(c)
				step/end step/start assistant/message step/end end(completed)`)
		})
	}
}

func TestAtMostTenCallsOverlap(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	var open sync.Once
	all := make(chan struct{})
	p := fn{"p", tool.Traits{Parallel: true}, func(context.Context, tool.Call) tool.Result {
		mu.Lock()
		running++
		most = max(most, running)
		if running == parallelCalls {
			open.Do(func() { close(all) })
		}
		mu.Unlock()
		<-all
		mu.Lock()
		running--
		mu.Unlock()
		return tool.Result{}
	}}
	var specs []string
	for i := range 15 {
		specs = append(specs, fmt.Sprintf("p:c%d", i))
	}
	w := start(t, newMemLog(), &play{next: []answer{calls(specs...), says("done")}}, nil, p)
	// The last five find the gate open: they cannot make it eleven.
	w.run("x")
	if most != parallelCalls {
		t.Errorf("%d at once", most)
	}
}

func TestBadCallsAreToldToTheModel(t *testing.T) {
	boom := fn{"boom", tool.Traits{}, func(context.Context, tool.Call) tool.Result { panic("oh") }}
	w := start(t, newMemLog(), &play{next: []answer{calls("nosuch:a", "boom:b:{", "boom:c"), says("done")}}, nil, boom)
	w.run("x")
	w.wantTypes(9, `call(a) result(a UNKNOWN_TOOL) call(b) result(b INVALID_ARGUMENTS) call(c) result(c INTERNAL)
		step/end step/start assistant/message step/end end(completed)`)
}

// What is wrong with a call is cut like any other result, and does not repeat a
// name that is as long as a file.
func TestResultsOfBadCallsAreCut(t *testing.T) {
	strict := schemed{fn{"strict", tool.Traits{}, ok("r")}, `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`}
	long := strings.Repeat("n", 60_000)
	w := start(t, newMemLog(), &play{next: []answer{calling(session.Call{ID: "a", Name: long}, session.Call{ID: "b", Name: "strict", Arguments: `{"` + long + `":1}`}), says("done")}}, func(o *Options) { o.Spill = noSpill{} }, strict)
	w.run("x")
	w.llm.mu.Lock()
	defer w.llm.mu.Unlock()
	msgs := w.llm.reqs[1].Messages
	for i, code := range []string{tool.CodeUnknownTool, tool.CodeInvalidArguments} {
		m := msgs[2+i]
		if !strings.HasPrefix(m.Text, code) || len(m.Text) > 1000 || !strings.Contains(m.Text, strings.Repeat("n", 200)+"…") {
			t.Errorf("%d bytes: %.300s", len(m.Text), m.Text)
		}
	}
	if r := found[session.ToolResult](w, session.TypeToolResult, 0); len(r.Error.Name) > 210 {
		t.Errorf("the result names the tool in %d bytes", len(r.Error.Name))
	}
	if c := found[session.ToolCall](w, session.TypeToolCall, 0); c.Name != long {
		t.Error("the call is not logged as it came")
	}
}

// A schema of many words can still make a message of any length.
func TestAResultOfABadCallOverTheLimitIsSpilled(t *testing.T) {
	properties := make([]string, 500)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"%s_%d":{}`, strings.Repeat("p", 120), i)
	}
	wide := schemed{fn{"wide", tool.Traits{}, ok("r")}, `{"type":"object","additionalProperties":false,"properties":{` + strings.Join(properties, ",") + `}}`}
	w := start(t, newMemLog(), &play{next: []answer{calling(session.Call{ID: "a", Name: "wide", Arguments: `{"b":1}`}), says("done")}}, func(o *Options) { o.Spill = noSpill{} }, wide)
	w.run("x")
	r := found[session.ToolResult](w, session.TypeToolResult, 0)
	if n := len(r.Message.Content); n > tool.MaxContent || !strings.Contains(r.Message.Content, "bytes left out here") || r.Error.Code != tool.CodeInvalidArguments {
		t.Errorf("%d bytes: %.200s", n, r.Message.Content)
	}
}

// calling is an answer with calls of any text.
func calling(list ...session.Call) answer {
	return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Finish: model.FinishToolCalls, Calls: list}, nil
	}
}

// schemed is a tool with a schema of its own.
type schemed struct {
	fn
	schema string
}

func (s schemed) Spec() session.ToolSpec {
	return session.ToolSpec{Name: s.name, Description: s.name, Parameters: json.RawMessage(s.schema)}
}

// noSpill is a full disk.
type noSpill struct{}

func (noSpill) Create(string) (tool.SpillFile, error) { return nil, errDisk }

func TestCallIDsAreMadeUniqueOnceAndForAll(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{calls("f:x", "f:x", "f:", "f:a b;c", "f:"+strings.Repeat("i", 128), "f:"+strings.Repeat("i", 129)), calls("f:x"), says("done")}}, nil, fn{"f", tool.Traits{Parallel: true}, ok("r")})
	w.run("go")
	seen := map[string]bool{}
	w.llm.mu.Lock()
	defer w.llm.mu.Unlock()
	for _, m := range w.llm.reqs[2].Messages {
		for _, c := range m.Calls {
			if seen[c.ID] || !validCallID(c.ID) {
				t.Errorf("id %q", c.ID)
			}
			seen[c.ID] = true
		}
	}
	if len(seen) != 7 || !seen["x"] || !seen[strings.Repeat("i", 128)] {
		t.Errorf("ids %v", seen)
	}
}

func TestSteeringEntersTheNextStepAfterTheResults(t *testing.T) {
	var w *world
	steer := fn{"f", tool.Traits{}, func(ctx context.Context, c tool.Call) tool.Result {
		if _, err := w.Steer(ctx, text("mind the gap"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
		if _, err := w.Followup(ctx, text("and then"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
		return tool.Result{Content: "r"}
	}}
	w = start(t, newMemLog(), &play{next: []answer{calls("f:c"), says("one"), says("two")}}, nil, steer)
	res, _ := w.run("x")
	if got, want := w.heard(), "u:x | a: | t:r | u:mind the gap | a:one | u:and then"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
	if res.FinalResponse != "two" || res.Steps != 3 {
		t.Errorf("the interval reports %+v", res)
	}
	w.wantTypes(9, `call(c) receipt receipt result(c) step/end claim step/start user/message assistant/message step/end end(completed)
		turn/start claim step/start user/message assistant/message step/end end(completed)`)
}

func TestSteeringWhileTheModelSpeaksGoesOnInTheSameTurn(t *testing.T) {
	var w *world
	llm := &play{next: []answer{func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		_, err := w.Inject(ctx, text("by the way"), session.Source{Kind: session.SourcePlugin})
		return model.Response{Text: "one", Finish: model.FinishStop}, err
	}, says("two")}}
	w = start(t, newMemLog(), llm, nil)
	w.run("x")
	if got, want := w.heard(), "u:x | a:one | u:by the way"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
}

func TestInjectDoesNotWake(t *testing.T) {
	w := start(t, newMemLog(), &play{}, nil)
	if _, err := w.Inject(t.Context(), text("x"), session.Source{Kind: session.SourcePlugin}); err != nil {
		t.Fatal(err)
	}
	if w.Status() != Idle {
		t.Error("awake")
	}
	w.wantTypes(0, "receipt")
}

func TestCancelInTheStreamKeepsWhatWasSaid(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	llm := &play{next: []answer{func(c context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		cancel(&Canceled{session.Cause{Kind: session.CauseUser}})
		<-c.Done()
		return model.Response{Text: "half", Calls: []session.Call{{ID: "c"}}}, c.Err()
	}}}
	w := start(t, newMemLog(), llm, nil)
	if _, err := w.log.Append(0, nil); err != nil {
		t.Fatal(err)
	}
	res, end, err := w.Run(ctx, RunOptions{Input: Task("x")}, func(string) {
		if _, err := w.Followup(t.Context(), text("later"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || end.Kind != "aborted" || end.Cause.Kind != "user" || res.FinalResponse != "half" {
		t.Errorf("%+v %+v %v", res, end, err)
	}
	w.wantTypes(3, `turn/start claim step/start user/message header context assistant/message step/end end(aborted)`)
	if !strings.Contains(string(w.log.events[9].Data), `"interrupted":true`) || strings.Contains(string(w.log.events[9].Data), "tool-call") {
		t.Errorf("%s", w.log.events[9].Data)
	}
	w.View(func(s *session.State) {
		if s.Inbox.Len(session.NextTurn) != 1 {
			t.Error("the inbox is not kept")
		}
	})
}

func TestCancelInAToolAnswersEveryCall(t *testing.T) {
	var w *world
	wait := fn{"wait", tool.Traits{}, func(ctx context.Context, _ tool.Call) tool.Result {
		if err := w.Cancel(context.WithoutCancel(ctx), session.Cause{Kind: session.CauseHook, Hook: "duration"}, true); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return tool.Errorf(tool.CodeAborted, "stopped")
	}}
	w = start(t, newMemLog(), &play{next: []answer{calls("wait:a", "wait:b")}}, nil, wait)
	_, end := w.run("x")
	if end.Kind != "aborted" || end.Cause.Hook != "duration" {
		t.Errorf("%+v", end)
	}
	w.wantTypes(9, `call(a) result(a ABORTED) result(b ABORTED_BEFORE_DISPATCH) step/end end(aborted)`)
}

func TestCancelDiscardsTheInboxOnlyWhenTold(t *testing.T) {
	w := start(t, newMemLog(), &play{}, nil)
	if _, err := w.Inject(t.Context(), text("x"), session.Source{Kind: session.SourceUser}); err != nil {
		t.Fatal(err)
	}
	if err := w.Cancel(t.Context(), session.Cause{Kind: session.CauseUser}, true); err != nil {
		t.Fatal(err)
	}
	w.wantTypes(0, "receipt")
	if err := w.Cancel(t.Context(), session.Cause{Kind: session.CauseUser}, false); err != nil {
		t.Fatal(err)
	}
	w.wantTypes(0, "receipt discard")
}

func TestMaxSteps(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{calls("f:a"), calls("f:b"), says("late"), says("next")}}, func(o *Options) { o.MaxSteps = 2 }, fn{"f", tool.Traits{}, ok("r")})
	res, end, err := w.Run(t.Context(), RunOptions{Input: Task("x")}, func(string) {
		if _, err := w.Followup(t.Context(), text("later"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || end.Kind != "max-steps" || res.Steps != 2 {
		t.Fatalf("%+v %+v %v", res, end, err)
	}
	w.View(func(s *session.State) {
		if s.Inbox.Len(session.NextTurn) != 1 {
			t.Error("the inbox is not kept")
		}
	})
	// The next run works off what is queued first, each message in a turn of its own.
	if res, end = w.run("then"); end.Kind != "completed" || res.Steps != 2 {
		t.Errorf("%+v %+v", res, end)
	}
	if got := w.heard(); !strings.HasSuffix(got, "t:r | u:later | a:late | u:then") {
		t.Errorf("model heard %s", got)
	}
}

func TestAModelErrorRestsTheDriverUntilALaterMessage(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{fails(&model.Error{Code: "AUTH", Message: "no", Status: 401}), says("one"), says("two")}}, nil)
	_, end, err := w.Run(t.Context(), RunOptions{Input: Task("x")}, func(string) {
		if _, err := w.Inject(t.Context(), text("kept"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || end.Kind != "error" || end.Error.Code != "AUTH" || end.Error.Status != 401 {
		t.Fatalf("%+v %v", end, err)
	}
	if _, err := w.Followup(t.Context(), text("again"), session.Source{Kind: session.SourceUser}); err != nil {
		t.Fatal(err)
	}
	if err := w.WhenIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.heard(), "u:kept | u:x | u:again"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
}

func TestLengthEndsTheTurnAndGoesOnWithTheNext(t *testing.T) {
	cut := func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Text: "half a", Finish: model.FinishLength}, nil
	}
	w := start(t, newMemLog(), &play{next: []answer{cut, says("two")}}, nil)
	_, end, err := w.Run(t.Context(), RunOptions{Input: Task("x")}, func(string) {
		if _, err := w.Followup(t.Context(), text("y"), session.Source{Kind: session.SourceUser}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || end.Kind != "completed" {
		t.Fatalf("%+v %v", end, err)
	}
	if !strings.Contains(w.types(0), "end(max-tokens)") {
		t.Error(w.types(0))
	}
}

func TestRetriesStayInTheirStep(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{fails(&model.Error{Code: model.CodeServer, Message: "busy", Status: 503}), says("ok")}}, nil)
	w.run("x")
	w.wantTypes(6, `header context llm/retry llm/retry-started assistant/message step/end end(completed)`)
}

func TestResumeClosesWhatACrashLeftAndKeepsThePrefix(t *testing.T) {
	f := fn{"f", tool.Traits{}, ok("r")}
	w := start(t, newMemLog(), &play{next: []answer{calls("f:a", "f:b"), says("done")}}, nil, f)
	w.run("x")
	before := w.heard()
	for cut := 2; cut <= len(w.log.events); cut++ {
		log := newMemLog(append([]session.Event{}, w.log.events[:cut]...)...)
		r := start(t, log, &play{next: []answer{says("again"), says("again")}}, func(o *Options) { o.System = "a newer text" }, f)
		if len(log.events) != cut {
			t.Fatal("opening writes")
		}
		res, end := r.run("go on")
		if end.Kind != "completed" {
			t.Fatalf("cut at %d: %+v", cut, end)
		}
		heard := r.heard()
		if cut > 8 && !strings.HasPrefix(heard, "u:x | a: | t:") || !strings.HasSuffix(heard, "u:go on") || strings.Count(heard, "u:x") != 1 {
			t.Errorf("cut at %d: model heard %s", cut, heard)
		}
		if cut >= 12 && !strings.HasPrefix(heard, before[:len("u:x | a: | t:r")]) {
			t.Errorf("cut at %d: %s does not begin as %s", cut, heard, before)
		}
		if cut > 7 && r.llm.reqs[0].System != "be good" {
			t.Errorf("cut at %d: system text %q", cut, r.llm.reqs[0].System)
		}
		if res.Events.From < int64(cut) {
			t.Errorf("cut at %d: the interval reaches back to %d", cut, res.Events.From)
		}
	}
}

func TestAFailedLogStopsBeforeWhatItGuards(t *testing.T) {
	ran := false
	f := fn{"f", tool.Traits{}, func(context.Context, tool.Call) tool.Result { ran = true; return tool.Result{} }}
	whole := start(t, newMemLog(), &play{next: []answer{calls("f:a"), says("done")}}, nil, f)
	whole.run("x")
	ops := whole.log.ops
	for n := 1; n <= ops; n++ {
		ran = false
		log := newMemLog()
		log.fail = func(_ string, i int) error {
			if i >= n {
				return errDisk
			}
			return nil
		}
		w := start(t, log, &play{next: []answer{calls("f:a"), says("done")}}, nil, f)
		res, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Leave: true}, nil)
		if !errors.Is(err, errDisk) {
			t.Fatalf("op %d: %v", n, err)
		}
		if res.SessionID != "" { // the receipt is on disk
			told := session.NewInterval(1)
			for _, e := range log.events[:log.durable] {
				if err := told.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			want := told.Result()
			want.SessionID, want.MessageID, want.DurationMS = res.SessionID, res.MessageID, res.DurationMS
			if !reflect.DeepEqual(res, want) {
				t.Errorf("op %d: the result tells of what is not on disk\n got %+v\nwant %+v", n, res, want)
			}
		}
		last := session.Event{}
		if log.durable > 0 {
			last = log.events[log.durable-1]
		}
		if ran && last.Type == session.TypeAssistantMessage {
			t.Errorf("op %d: the tool ran before its call was on disk", n)
		}
		if _, err := w.Followup(t.Context(), text("y"), session.Source{}); err == nil {
			t.Errorf("op %d: a message is accepted after the log failed", n)
		}
	}
}

func TestLeavingRefusesLaterMessages(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("one")}}, nil)
	if _, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Leave: true}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Followup(t.Context(), text("y"), session.Source{}); !errors.Is(err, ErrLeaving) {
		t.Errorf("%v", err)
	}
	if err := w.Cancel(t.Context(), session.Cause{Kind: session.CauseUser}, false); !errors.Is(err, ErrLeaving) {
		t.Errorf("%v", err)
	}
	if _, _, err := w.Run(t.Context(), RunOptions{Input: Task("x")}, nil); !errors.Is(err, ErrLeaving) {
		t.Errorf("%v", err)
	}
}

// TestAMessageRacingTheLeaveIsServedOrRefused: never accepted and left behind.
func TestAMessageRacingTheLeaveIsServedOrRefused(t *testing.T) {
	for range 300 {
		llm := &play{next: []answer{says("one"), says("two")}}
		w := start(t, newMemLog(), llm, nil)
		var wg sync.WaitGroup
		var accepted error
		_, _, err := w.Run(t.Context(), RunOptions{Input: Task("x"), Leave: true}, func(string) {
			wg.Go(func() { _, accepted = w.Followup(t.Context(), text("y"), session.Source{}) })
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if served := len(llm.reqs) == 2; served != (accepted == nil) {
			t.Fatalf("served %v, accepted %v", served, accepted)
		}
	}
}

func TestRunTakesOnlyAnIdleAgent(t *testing.T) {
	var w *world
	llm := &play{next: []answer{func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		_, _, err := w.Run(ctx, RunOptions{Input: Task("y")}, nil)
		if !errors.Is(err, ErrRunning) {
			t.Errorf("%v", err)
		}
		return model.Response{Text: "x", Finish: model.FinishStop}, nil
	}}}
	w = start(t, newMemLog(), llm, nil)
	w.run("x")
	if _, _, err := w.Run(t.Context(), RunOptions{}, nil); err == nil {
		t.Error("runs without anything to do")
	}
}

func TestACallBesideAnUnansweredQuestionIsHeldBack(t *testing.T) {
	ask := fn{"ask", tool.Traits{Person: true}, func(_ context.Context, c tool.Call) tool.Result {
		r := tool.Result{Content: "pending", Unanswered: "q" + c.ID[:1]}
		if err := c.Commit(r); err != nil {
			t.Error(err)
		}
		if c.Commit(r) == nil {
			t.Error("commits twice")
		}
		return r
	}}
	change := fn{"change", tool.Traits{}, ok("changed")}
	read := fn{"read", tool.Traits{ReadOnly: true, Parallel: true}, ok("read")}
	w := start(t, newMemLog(), &play{next: []answer{calls("change:0", "ask:a", "ask:a2", "ask:b", "change:1", "read:2"), says("done")}}, nil, ask, change, read)
	w.run("x")
	got := w.types(9)
	if !strings.Contains(got, "result(1 NOT_STARTED_QUESTION_PENDING) call(2) result(2)") || strings.Contains(got, "call(1)") || !strings.HasPrefix(got, "call(0) result(0) call(a)") {
		t.Error(got)
	}
	if heard := w.heard(); !strings.Contains(heard, "got no answer (callId qa, qb)") {
		t.Errorf("the questions are not named, each once: %s", heard)
	}
}

func TestSecretsAreOutOfEverythingThatIsLogged(t *testing.T) {
	f := fn{"f", tool.Traits{}, ok("the key is KEY")}
	w := start(t, newMemLog(), &play{next: []answer{calls("f:a"), says("KEY")}}, func(o *Options) {
		o.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "KEY", "[key]")) }
	}, f)
	res, _ := w.run("x KEY")
	if res.FinalResponse != "[key]" || strings.Contains(w.heard(), "KEY") {
		t.Errorf("%q %q", res.FinalResponse, w.heard())
	}
}

func TestAFeedTellsEverythingInOrder(t *testing.T) {
	f := fn{"f", tool.Traits{}, ok("r")}
	w := start(t, newMemLog(), &play{next: []answer{calls("f:a"), says("done")}}, nil, f)
	feed, err := w.Subscribe(0, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	done := make(chan error)
	go func() {
		next := int64(0)
		for {
			it, err := feed.Next(t.Context())
			if err != nil {
				done <- err
				return
			}
			for _, l := range it.Lines {
				if l.Seq != next {
					t.Errorf("line %d where %d should be", l.Seq, next)
				}
				next++
				got = append(got, l.Type)
			}
			if it.Status != "" {
				got = append(got, string(it.Status))
			}
			if it.Delta != nil {
				got = append(got, "delta "+it.Delta.Text)
			}
		}
	}()
	w.run("x")
	w.log.close()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Error(err)
	}
	joined := strings.Join(got, " ")
	if !strings.HasPrefix(joined, "idle session/settings agent/inbox/spliced running turn/start") || !strings.HasSuffix(joined, "step/start delta done assistant/message step/end turn/end idle") {
		t.Error(joined)
	}
}

func TestSteerIfDecidesUnderTheLock(t *testing.T) {
	w := start(t, newMemLog(), &play{}, func(o *Options) { o.MaxSteps = 0 })
	refusal := errors.New("no")
	if _, err := w.SteerIf(t.Context(), session.Source{}, func(*session.State) (string, error) { return "", refusal }); !errors.Is(err, refusal) {
		t.Errorf("%v", err)
	}
	w.wantTypes(0, "")
	id, err := w.SteerIf(t.Context(), session.Source{Kind: session.SourceQuestionReply, CallID: "c"}, func(*session.State) (string, error) { return "yes", nil })
	if err != nil || id == "" {
		t.Fatal(err)
	}
	if err := w.WhenIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, err := w.DiscardIf(t.Context(), func(*session.State) (string, error) { return id, nil })
	if err != nil || !gone {
		t.Errorf("%v %v", gone, err)
	}
	if gone, err = w.DiscardIf(t.Context(), func(*session.State) (string, error) { return id, nil }); err != nil || gone {
		t.Errorf("discards twice: %v %v", gone, err)
	}
}

func TestSettingsAreWholeFromTheStart(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("x")}}, nil)
	w.run("x")
	var s map[string]any
	if err := json.Unmarshal(w.log.events[0].Data, &s); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"mode", "timeout", "permission", "approve"} {
		if _, ok := s[k]; !ok {
			t.Errorf("no %s", k)
		}
	}
}
