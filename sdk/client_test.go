package deepseek_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	deepseek "deepseek/sdk"
)

func TestRunAndContinue(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	c := b.start(b.options("plain.yaml"))
	ctx := testContext(t)
	one, err := c.Run(ctx, "go")
	if err != nil || one.FinalResponse != "first" || one.FinishReason == nil || *one.FinishReason != "completed" || one.Steps != 1 {
		t.Fatalf("first: %+v %v", one, err)
	}
	two, err := c.Continue(ctx, one.SessionID, "go on")
	if err != nil || two.FinalResponse != "second" || two.SessionID != one.SessionID {
		t.Fatalf("second: %+v %v", two, err)
	}
	if last := one.Events[len(one.Events)-1].Seq; two.Events[0].Seq <= last {
		t.Errorf("the second interval begins at %d, the first ended at %d", two.Events[0].Seq, last)
	}
	// The session is free once it is closed, and another server goes on with it.
	if err := c.CloseSession(ctx, one.SessionID); err != nil {
		t.Fatal(err)
	}
	other := b.start(b.options("plain.yaml"))
	three, err := other.Continue(ctx, one.SessionID, "more")
	if err != nil || three.Error == nil || three.Error.Code != "SCRIPT_EXHAUSTED" || *three.FinishReason != "error" {
		t.Fatalf("third: %+v %v", three, err)
	}
	var refused *deepseek.RefusedError
	if _, err := c.Continue(ctx, one.SessionID, "x"); !errors.As(err, &refused) || refused.Code != "SESSION_BUSY" {
		t.Errorf("a session of another server: %v", err)
	}
	n := 0
	for e, err := range c.Read(ctx, one.SessionID, 0) {
		if err != nil || e.Seq != int64(n) {
			t.Fatalf("event %d: %+v %v", n, e, err)
		}
		n++
	}
	if n <= len(one.Events)+len(two.Events) {
		t.Errorf("%d events were read", n)
	}
	if list, err := c.Sessions(ctx); err != nil || len(list) != 1 || list[0].ID != one.SessionID || !list[0].Live {
		t.Errorf("sessions: %+v %v", list, err)
	}
}

func TestAnswersByAHandler(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	o := b.options("asked.yaml")
	o.OnQuestion = func(_ context.Context, q deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		if q.Kind != deepseek.KindQuestion || !q.Timed || q.RemainingMS <= 0 || q.RemainingMS > 600_000 || q.Questions[0].Options[1].Label != "9090" {
			t.Errorf("asked %+v", q)
		}
		return []deepseek.Answer{{ID: "port", Selected: []string{"9090"}}}, nil
	}
	r, err := b.start(o).Run(testContext(t), "go")
	if err != nil || r.FinalResponse != "answered" || len(r.Questions) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if results := text(r, "tool/result"); !strings.Contains(results, "9090") || strings.Contains(results, "pending") {
		t.Errorf("results: %s", results)
	}
}

func TestAnAnswerBehindItsTimeIsALateOne(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	waiting := make(chan struct{})
	o := b.options("asking.yaml")
	o.OnQuestion = func(ctx context.Context, _ deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		select {
		case <-waiting: // the agent has gone on
		case <-ctx.Done():
		}
		return []deepseek.Answer{{ID: "port", Selected: []string{"8080"}}}, nil
	}
	c := b.start(o)
	ctx := testContext(t)
	told := c.Events(ctx, "")
	go func() {
		for n, err := range told {
			switch {
			case err != nil:
				return
			case calls(n, "wait1"):
				close(waiting)
			case n.Event != nil && n.Event.Type == "agent/inbox/spliced" && strings.Contains(string(n.Event.Data), "answer_to_pending_question"):
				b.release()
			}
		}
	}()
	r, err := c.Run(ctx, "go")
	if err != nil || r.FinalResponse != "answered" || len(r.Questions) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if !strings.Contains(text(r, "tool/result"), "pending") || !strings.Contains(text(r, "user/message"), "user-question-reply") {
		t.Error("the answer did not come as a late one")
	}
}

func TestAHandlerThatFailsLeavesTheQuestion(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]deepseek.Handler{
		"error": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
			return nil, errors.New("oh")
		},
		"panic": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) { panic("oh") },
		"bad": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
			return []deepseek.Answer{{ID: "oh"}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.release()
			o := b.options("asking.yaml")
			o.OnQuestion = h
			r, err := b.start(o).Run(testContext(t), "go")
			var failed *deepseek.HandlerError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "oh") || r == nil || len(r.Questions) != 1 || r.Questions[0].State != "continued" {
				t.Fatalf("%+v %v", r, err)
			}
			if want := "deepseek answer " + r.SessionID + " ask1"; r.Questions[0].Answer != want {
				t.Errorf("the command is %q, want %q", r.Questions[0].Answer, want)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	o := b.options("approval.yaml")
	o.Permission = "workspace-write"
	r, err := b.start(o).Run(testContext(t), "go")
	if err != nil || r.Denied != 1 {
		t.Fatalf("with nobody to ask: %+v %v", r, err)
	}
	o.OnApproval = func(_ context.Context, q deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		if q.Kind != deepseek.KindApproval {
			t.Errorf("asked %+v", q)
		}
		return []deepseek.Answer{{ID: q.Questions[0].ID, Selected: []string{"yes, once"}}}, nil
	}
	r, err = b.start(o).Run(testContext(t), "go")
	if err != nil || r.Denied != 0 || r.FinalResponse != "after" {
		t.Fatalf("with somebody: %+v %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.ws), "outside.txt")); err != nil {
		t.Error(err)
	}
}

func TestACancelledRunKeepsTheSession(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	c := b.start(b.options("waiting.yaml"))
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	told := c.Events(testContext(t), "")
	ran := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, "go")
		ran <- err
	}()
	var id string
	for n, err := range told {
		if err != nil {
			t.Fatal(err)
		}
		if calls(n, "wait1") {
			id = n.SessionID
			if _, err := c.Continue(ctx, id, "x"); !errors.Is(err, deepseek.ErrRunInProgress) {
				t.Errorf("a second run of the session: %v", err)
			}
			cancel()
		}
		if n.Event != nil && n.Event.Type == "turn/end" {
			if !strings.Contains(string(n.Event.Data), "aborted") {
				t.Errorf("turn/end: %s", n.Event.Data)
			}
			break
		}
	}
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	if r, err := c.Continue(testContext(t), id, "go on"); err != nil || r.FinalResponse != "late" {
		t.Errorf("going on: %+v %v", r, err)
	}
}

func TestServersThatAreNotThereOrEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"exit 3", "exit status 3"},
		{"echo no key here >&2; exit 1", "no key here"},
		{"echo hello", "not understood"},
		{"kill -9 $$", "killed"},
	} {
		o := b.options("plain.yaml")
		o.Command = []string{"sh", "-c", tt.command}
		_, err := deepseek.Start(testContext(t), o)
		var died *deepseek.ServerError
		if !errors.As(err, &died) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.command, err)
		}
	}
	o := b.options("plain.yaml")
	o.Command = []string{filepath.Join(b.ws, "nothing")}
	if _, err := deepseek.Start(testContext(t), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	o.Command = []string{"sleep", "1000"}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := deepseek.Start(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that says nothing: %v", err)
	}
	o = b.options("plain.yaml")
	o.Mode, o.Timeout = "legacy", 5
	var refused *deepseek.RefusedError
	if _, err := deepseek.Start(testContext(t), o); !errors.As(err, &refused) || refused.Path != "timeout" {
		t.Errorf("a timeout in legacy mode: %v", err)
	}
}

func TestAFullDiskEndsTheServerWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	o := b.options("plain.yaml")
	// The header and the tools of the first request do not fit any more.
	o.Command = []string{"bash", "-c", `ulimit -f 8; exec "$0" rpc`, self(t)}
	_, err := b.start(o).Run(testContext(t), "go")
	var died *deepseek.ServerError
	if !errors.As(err, &died) || !strings.Contains(err.Error(), "LOG_WRITE") || !strings.Contains(died.Reason, "too large") {
		t.Errorf("%v", err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	b := newBox(t)
	before := runtime.NumGoroutine()
	c, err := deepseek.Start(testContext(t), b.options("waiting.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	told := c.Events(testContext(t), "")
	go func() {
		_, err := c.Run(testContext(t), "go")
		ran <- err
	}()
	for n, err := range told {
		if err != nil {
			t.Fatal(err)
		}
		if calls(n, "wait1") {
			break
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ran; !errors.Is(err, deepseek.ErrClosed) {
		t.Errorf("the run in hand: %v", err)
	}
	if _, err := c.Run(testContext(t), "go"); !errors.Is(err, deepseek.ErrClosed) {
		t.Errorf("a run of a closed client: %v", err)
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// text is the data of the events of a type.
func text(r *deepseek.RunResult, typ string) string {
	var s strings.Builder
	for _, e := range r.Events {
		if e.Type == typ {
			s.Write(e.Data)
		}
	}
	return s.String()
}
