package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// costs answers with a text and a usage.
func costs(text string, u session.Usage) answer {
	return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{Text: text, Finish: model.FinishStop, Usage: &u}, nil
	}
}

// words is a text of about n estimated tokens.
func words(n int) string { return strings.Repeat("word ", n*100/126) }

// narrow makes the context window small.
func narrow(o *Options) { o.Window = 1000 }

var exceeded = fails(&model.Error{Code: model.CodeContextWindow, Message: "too long", Status: 400})

// isSummaryRequest tells whether a request asks for a summary.
func isSummaryRequest(r model.Request) bool {
	return r.Messages[len(r.Messages)-1].Text == strings.TrimSpace(summaryRequest)
}

// found is the payload of the n-th event of a type, from 0.
func found[T any](w *world, typ string, n int) T {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	var v T
	for _, e := range w.log.events {
		if e.Type != typ {
			continue
		}
		if n--; n < 0 {
			if err := json.Unmarshal(e.Data, &v); err != nil {
				w.t.Fatal(err)
			}
			return v
		}
	}
	w.t.Fatalf("no %s in the log", typ)
	return v
}

func (w *world) count(typ string) int {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	n := 0
	for _, e := range w.log.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func TestAFullHistoryIsSummedUpBeforeTheNextRequest(t *testing.T) {
	cost := func(u session.Usage) (float64, bool) { return float64(u.OutputTokens), true }
	w := start(t, newMemLog(), &play{next: []answer{
		costs("looked at it "+words(300), session.Usage{InputTokens: 700, CacheReadTokens: 60, OutputTokens: 50}),
		costs("the summary", session.Usage{InputTokens: 100, CacheReadTokens: 700, OutputTokens: 7}),
		costs("done", session.Usage{InputTokens: 90, OutputTokens: 1}),
	}}, func(o *Options) { o.Cost, o.Window = cost, 1000 })
	w.run("first")
	n := len(w.log.events)
	res, end := w.run("second")
	if end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	w.wantTypes(n+2, `turn/start claim step/start user/message compaction/start compaction/summary user/message compaction/end
		assistant/message step/end end(completed)`)
	ask, after := w.llm.reqs[1], w.llm.reqs[2]
	if !isSummaryRequest(ask) || len(ask.Messages) != 4 || ask.Messages[2].Text != "second" || ask.System != w.llm.reqs[0].System || ask.Committed != 1 {
		t.Errorf("the request for a summary: %d messages, committed %d", len(ask.Messages), ask.Committed)
	}
	if len(after.Messages) != 2 || !strings.HasSuffix(after.Messages[0].Text, "\n\nthe summary") || after.Messages[1].Text != "second" || after.Committed != 2 {
		t.Errorf("after it: %+v", after.Messages)
	}
	s := found[session.CompactionSummary](w, session.TypeCompactionSummary, 0)
	if s.FromSeq != 5 || s.ToSeq != 8 || *s.Usage.CostUSD != 7 {
		t.Errorf("%+v", s)
	}
	for _, e := range w.log.events {
		if e.SurfaceOp == nil {
			continue
		}
		m := session.UserMessage{}
		if err := json.Unmarshal(e.Data, &m); err != nil {
			t.Fatal(err)
		}
		if *e.SurfaceOp != (session.SurfaceOp{Op: "replace", FromSeq: s.FromSeq, ToSeq: s.ToSeq}) || m.ID != s.MessageID || m.Source.Kind != session.SourcePlugin {
			t.Errorf("%+v %+v", e.SurfaceOp, m)
		}
	}
	if u := res.Usage; u.InputTokens != 190 || u.CacheReadTokens != 700 || u.OutputTokens != 8 || *u.CostUSD != 8 {
		t.Errorf("the interval's usage is %+v", u)
	}
	if res.FinalResponse != "done" || res.Steps != 1 {
		t.Errorf("%+v", res)
	}
}

func TestLongResultsAreLeftOutFirstButNotInTheTail(t *testing.T) {
	read := fn{"read", tool.Traits{}, func(_ context.Context, c tool.Call) tool.Result {
		if c.ID == "late" {
			return tool.Result{Content: words(600)}
		}
		return tool.Result{Content: words(3000)}
	}}
	w := start(t, newMemLog(), &play{next: []answer{calls("read:a", "read:b"), calls("read:late"), says("sum"), says("done")}},
		func(o *Options) { o.Window = 8000 }, read)
	if _, end := w.run("x"); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	// The first two results fill the window once the third is there.
	w.wantTypes(9, `call(a) result(a) call(b) result(b) step/end step/start assistant/message call(late) result(late) step/end
		step/start compaction/start compaction/prune compaction/summary user/message compaction/end assistant/message step/end end(completed)`)
	if p := found[session.CompactionPrune](w, session.TypeCompactionPrune, 0); len(p.Seqs) != 2 || p.Seqs[0] != 10 || p.Seqs[1] != 12 {
		t.Errorf("%+v", p)
	}
	if ask := w.llm.reqs[2]; !isSummaryRequest(ask) || ask.Messages[2].Text != session.Pruned || ask.Messages[5].Text != words(600) {
		t.Error("the request for a summary holds what was to be left out, or lacks the tail")
	}
	if got := w.llm.reqs[3].Messages; len(got) != 3 || len(got[1].Calls) != 1 || got[2].Text != words(600) {
		t.Errorf("the tail is not kept: %d messages", len(got))
	}
}

// Were they left out, the model would ask for them again, at every step.
func TestResultsThatNoModelHasSeenAreSent(t *testing.T) {
	read := fn{"read", tool.Traits{}, ok(words(1000))}
	for name, c := range map[string]struct {
		calls string
		sent  string // what becomes of each result: whole or out
	}{
		"all of them":                  {"a b c d e f", "whole whole whole whole whole whole"},
		"as many as there is room for": {"a b c d e f g h i j", "whole whole whole whole whole whole whole out out out"},
	} {
		t.Run(name, func(t *testing.T) {
			var specs []string
			for _, id := range strings.Fields(c.calls) {
				specs = append(specs, "read:"+id)
			}
			w := start(t, newMemLog(), &play{next: []answer{costs(words(1500), session.Usage{}), calls(specs...), says("sum"), says("done")}},
				func(o *Options) { o.Window = 8000 }, read)
			w.run("first")
			if res, end := w.run("second"); end.Kind != session.EndCompleted || res.FinalResponse != "done" {
				t.Fatalf("%+v %+v", end, res)
			}
			var got []string
			for _, m := range w.llm.reqs[3].Messages {
				switch m.Text {
				case words(1000):
					got = append(got, "whole")
				case session.Pruned:
					got = append(got, "out")
				}
			}
			if strings.Join(got, " ") != c.sent {
				t.Errorf("sent %v, want %s", got, c.sent)
			}
		})
	}
}

func TestALimitOfAnswersDoesNotCutSummaries(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{costs(words(900), session.Usage{}), says("sum"), says("done")}}, func(o *Options) {
		o.Window, o.Config.MaxTokens = 1000, 50
	})
	w.run("first")
	w.run("second")
	if ask, after := w.llm.reqs[1], w.llm.reqs[2]; ask.Config.MaxTokens != summaryTokens || after.Config.MaxTokens != 50 {
		t.Errorf("the summary may have %d tokens, the answer %d", ask.Config.MaxTokens, after.Config.MaxTokens)
	}
}

func TestAFailedSummaryIsNotTriedAgainBeforeTheHistoryHasGrown(t *testing.T) {
	usage := func(n int64) session.Usage { return session.Usage{InputTokens: n, OutputTokens: 1} }
	for name, bad := range map[string]answer{
		"refused":    fails(&model.Error{Code: "SOME_CODE", Message: "no"}),
		"calls only": calls("f:1"),
		"nothing":    costs("  \n", usage(9000)),
		"cut": func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
			return model.Response{Text: "the user asked", Finish: model.FinishLength}, nil
		},
		"longer than it": costs(words(4000), usage(9000)),
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, newMemLog(), &play{next: []answer{
				costs(words(3000), usage(8500)),
				bad, costs("two", usage(8600)),
				costs("three "+words(600), usage(9300)),
				costs("better", usage(9400)), costs("four", usage(300)),
			}}, func(o *Options) { o.Window = 10_000 }, fn{"f", tool.Traits{}, ok("r")})
			for _, task := range []string{"1", "2", "3", "4"} {
				if res, end := w.run(task); end.Kind != session.EndCompleted {
					t.Fatalf("task %s: %+v %+v", task, end, res)
				}
			}
			var asked []int
			for i, r := range w.llm.reqs {
				if isSummaryRequest(r) {
					asked = append(asked, i)
				}
			}
			if fmt.Sprint(asked) != "[1 4]" {
				t.Errorf("summaries were asked for in requests %v", asked)
			}
			if e := found[session.CompactionEnd](w, session.TypeCompactionEnd, 0); e.OK || e.Error == nil || e.Error.Code == "" {
				t.Errorf("the first end is %+v", e)
			}
			if e := found[session.CompactionEnd](w, session.TypeCompactionEnd, 1); !e.OK || e.Error != nil {
				t.Errorf("the second end is %+v", e)
			}
		})
	}
}

// What was left out on the way is not to be grown back first.
func TestAFailedSummaryIsTriedAgainFromWhereTheHistoryStandsNow(t *testing.T) {
	read := fn{"read", tool.Traits{}, ok(words(6000))}
	none := session.Usage{}
	w := start(t, newMemLog(), &play{next: []answer{
		calls("read:a"), costs(words(1500), none),
		fails(&model.Error{Code: "X", Message: "no"}), costs("two", none),
		says("sum"), says("done"),
	}}, func(o *Options) { o.Window = 10_000 }, read)
	for i, task := range []string{"one", words(1000), words(6000)} {
		if _, end := w.run(task); end.Kind != session.EndCompleted {
			t.Fatalf("task %d: %+v", i+1, end)
		}
	}
	var asked []int
	for i, r := range w.llm.reqs {
		if isSummaryRequest(r) {
			asked = append(asked, i)
		}
	}
	if fmt.Sprint(asked) != "[2 4]" {
		t.Errorf("summaries were asked for in requests %v", asked)
	}
}

func TestAHistoryThatTheServerFindsTooLong(t *testing.T) {
	long := costs(words(3000), session.Usage{})
	for name, c := range map[string]struct {
		next []answer
		end  string
		text string
		kind string // events of the second run, from its step/start on
	}{
		"is summed up and sent again": {
			[]answer{long, exceeded, says("sum"), says("done")},
			session.EndCompleted, "done",
			`step/start user/message compaction/start compaction/summary user/message compaction/end assistant/message step/end end(completed)`,
		},
		"once only": {
			[]answer{long, exceeded, says("sum"), exceeded, says("never")},
			session.EndError, "",
			`step/start user/message compaction/start compaction/summary user/message compaction/end step/end end(error)`,
		},
		"and not again if it is as long as before": {
			[]answer{long, exceeded, exceeded, says("never")},
			session.EndError, "",
			`step/start user/message compaction/start compaction/end step/end end(error)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, newMemLog(), &play{next: c.next}, func(o *Options) { o.Window = 1_000_000 })
			w.run("first")
			n := len(w.log.events)
			res, end := w.run("second")
			if end.Kind != c.end || res.FinalResponse != c.text {
				t.Fatalf("%+v %+v", end, res)
			}
			if end.Kind == session.EndError && end.Error.Code != model.CodeContextWindow {
				t.Errorf("%+v", end.Error)
			}
			w.wantTypes(n+4, c.kind)
			// What did not fit is not sent whole to be summed up.
			if ask := w.llm.reqs[2]; !isSummaryRequest(ask) || len(ask.Messages) != 3 {
				t.Errorf("the request for a summary has %d messages", len(ask.Messages))
			}
		})
	}
}

func TestWithNothingToSumUpTheServersWordStands(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{exceeded}}, nil)
	if _, end := w.run("x"); end.Kind != session.EndError || end.Error.Code != model.CodeContextWindow {
		t.Errorf("%+v", end)
	}
	if w.count(session.TypeCompactionStart) != 0 {
		t.Error("a compaction of nothing is logged")
	}
}

func TestPruningAloneIsReasonToTryAgain(t *testing.T) {
	read := fn{"read", tool.Traits{}, ok(words(3000))}
	w := start(t, newMemLog(), &play{next: []answer{calls("read:a"), exceeded, fails(&model.Error{Code: "X", Message: "no"}), says("done")}},
		func(o *Options) { o.Window = 1_000_000 }, read)
	if res, end := w.run("x"); end.Kind != session.EndCompleted || res.FinalResponse != "done" {
		t.Fatalf("%+v", end)
	}
	if got, want := w.heard(), "u:x | a: | t:"+session.Pruned; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
}

func TestCancelInASummaryLeavesASoundLog(t *testing.T) {
	var w *world
	cancel := func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		if err := w.Cancel(context.WithoutCancel(ctx), session.Cause{Kind: session.CauseUser}, true); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return model.Response{Text: "half a sum"}, ctx.Err()
	}
	w = start(t, newMemLog(), &play{next: []answer{costs(words(600), session.Usage{InputTokens: 900}), cancel, says("sum"), says("done")}}, narrow)
	w.run("first")
	n := len(w.log.events)
	res, end := w.run("second")
	if end.Kind != session.EndAborted || res.FinalResponse != "" {
		t.Errorf("%+v %+v", end, res)
	}
	w.wantTypes(n+4, `step/start user/message compaction/start compaction/end step/end end(aborted)`)
	if _, end := w.run("third"); end.Kind != session.EndCompleted {
		t.Errorf("%+v", end)
	}
	if got := w.llm.reqs[3].Messages; len(got) != 3 || got[2].Text != "third" {
		t.Errorf("%+v", got)
	}
}

func TestTheSummaryEndsWithTheQuestionsThatWait(t *testing.T) {
	ask := fn{session.AskTool, tool.Traits{Person: true}, func(_ context.Context, c tool.Call) tool.Result {
		text, err := session.PendingText(c.ID, "go on")
		if err != nil {
			t.Error(err)
		}
		return tool.Result{Content: text, Unanswered: c.ID}
	}}
	question := `{"id":"db","question":"Which database: <a> & b?","options":[{"label":"sqlite"},{"label":"other"}]}`
	asks := func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		args := `{"questions":[` + question + `]}`
		return model.Response{Text: words(400), Calls: []session.Call{{Name: session.AskTool, ID: "q1", Arguments: args}}, Finish: model.FinishToolCalls}, nil
	}
	w := start(t, newMemLog(), &play{next: []answer{asks, costs("waiting", session.Usage{InputTokens: 900}), says("sum"), says("done")}}, narrow, timed{ask})
	w.run("first")
	w.run("second")
	got := w.llm.reqs[3].Messages[0].Text
	if want := "\n" + `{"callId":"q1","questions":[` + question + `]}`; !strings.HasSuffix(got, want) {
		t.Errorf("the message\n%s\ndoes not end with\n%s", got, want)
	}
	w.View(func(s *session.State) {
		if q, ok := s.Questions.Lookup("q1"); !ok || q.State != session.QuestionContinued {
			t.Errorf("%+v %v", q, ok)
		}
	})
}

// timed is the asking tool as timed mode offers it.
type timed struct{ fn }

func (f timed) Spec() session.ToolSpec {
	s := f.fn.Spec()
	s.Parameters = json.RawMessage(`{"type":"object","properties":{"timeout":{"type":"number"}}}`)
	return s
}

func TestASecondSummaryTakesInTheFirst(t *testing.T) {
	u := func(n int64) session.Usage { return session.Usage{InputTokens: n} }
	w := start(t, newMemLog(), &play{next: []answer{
		costs(words(300), u(900)), says("sum one"), costs(words(300), u(900)), says("sum two"), costs("done", u(100)),
	}}, func(o *Options) {
		o.Window, o.Instructions = 1000, InstructionsText([]Instruction{{"/w/AGENTS.md", "use tabs"}})
	})
	for _, task := range []string{"1", "2", "3"} {
		w.run(task)
	}
	got := w.llm.reqs[4].Messages
	if len(got) != 2 || !strings.Contains(got[0].Text, "sum two") || strings.Contains(got[0].Text, "sum one") || got[1].Text != "3" {
		t.Errorf("%+v", got)
	}
	if strings.Count(got[0].Text, "use tabs") != 1 {
		t.Errorf("the instructions are not carried on once: %s", got[0].Text)
	}
}

// TestALogCutInACompactionResumes cuts the log behind every event: a crash leaves no other.
func TestALogCutInACompactionResumes(t *testing.T) {
	read := fn{"read", tool.Traits{}, ok(words(3000))}
	w := start(t, newMemLog(), &play{next: []answer{calls("read:a"), costs("looked "+words(200), session.Usage{InputTokens: 7000}), says("sum"), says("done")}},
		func(o *Options) { o.Window = 8000 }, read)
	w.run("first")
	from := len(w.log.events)
	w.run("second")
	for cut := from; cut <= len(w.log.events); cut++ {
		log := newMemLog(append([]session.Event{}, w.log.events[:cut]...)...)
		again := &play{next: []answer{costs("one", session.Usage{InputTokens: 7000}), costs("two", session.Usage{InputTokens: 7000}), says("three"), says("four"), says("five")}}
		r := start(t, log, again, func(o *Options) { o.Window = 8000 }, read)
		if _, end := r.run("go on"); end.Kind != session.EndCompleted {
			t.Fatalf("cut at %d: %+v", cut, end)
		}
		open := 0
		for _, e := range log.events {
			switch e.Type {
			case session.TypeCompactionStart:
				open++
			case session.TypeCompactionEnd:
				open--
			}
		}
		if open != 0 {
			t.Errorf("cut at %d: a compaction is left open", cut)
		}
		if heard := r.heard(); !strings.HasSuffix(heard, "u:go on") || cut > from+6 && strings.Count(heard, "u:second") != 1 {
			t.Errorf("cut at %d: model heard %s", cut, heard)
		}
	}
}

func TestAFailedLogInACompactionEndsTheRun(t *testing.T) {
	run := func(log *memLog) (*world, error) {
		w := start(t, log, &play{next: []answer{costs(words(600), session.Usage{InputTokens: 900}), says("sum"), says("done")}}, narrow)
		if _, _, err := w.Run(t.Context(), RunOptions{Input: Task("first")}, nil); err != nil {
			return w, err
		}
		_, _, err := w.Run(t.Context(), RunOptions{Input: Task("second")}, nil)
		return w, err
	}
	w, err := run(newMemLog())
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= w.log.ops; n++ {
		log := newMemLog()
		log.fail = func(_ string, i int) error {
			if i >= n {
				return errDisk
			}
			return nil
		}
		if _, err := run(log); !errors.Is(err, errDisk) {
			t.Errorf("op %d: %v", n, err)
		}
	}
}
