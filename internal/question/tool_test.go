package question

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestToolText(t *testing.T) {
	for _, timed := range []bool{false, true} {
		tl := NewTool(nil, ToolOptions{Timed: timed})
		spec := tl.Spec()
		if n := len(spec.Description) + len(spec.Parameters); n > 1600 {
			t.Errorf("timed %v: %d bytes", timed, n)
		}
		if got := strings.Contains(string(spec.Parameters), `"timeout":{"type":"number"`); got != timed {
			t.Errorf("timed %v: timeout in the schema: %v", timed, got)
		}
		var q session.Questions
		e, err := session.NewEvent(session.TypeRequestHeader, 0, session.RequestHeader{Header: session.HeaderBody{Tools: []session.ToolSpec{spec}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Apply(e); err != nil || q.Timed() != timed {
			t.Errorf("timed %v: the log says %v, %v", timed, q.Timed(), err)
		}
		r, err := tool.NewRegistry(tl)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Compile(); err != nil {
			t.Error(err)
		}
		// The schema constrains types only; ranges are the service's.
		for args, ok := range map[string]bool{dbArgs: true, `{"questions":[]}`: true, `{}`: false, `{"questions":[{"id":"a"}]}`: false, `{"questions":[{"id":1,"question":"?"}]}`: false} {
			if _, _, bad := r.Check(session.AskTool, args); (bad == nil) != ok {
				t.Errorf("%s: %+v", args, bad)
			}
		}
		if traits := tl.Traits(); !traits.Person || traits.ReadOnly || traits.Parallel {
			t.Errorf("%+v", traits)
		}
	}
}

// ranTool is one call of the tool, with what it committed.
type ranTool struct {
	t         *testing.T
	s         *Service
	result    tool.Result
	committed []tool.Result
	took      time.Duration
}

// run runs the call and, while it waits, lets meanwhile act.
func (r *ranTool) run(ctx context.Context, o ToolOptions, args string, meanwhile func()) {
	call := tool.Call{ID: "c", Arguments: []byte(args), Commit: func(res tool.Result) error {
		r.committed = append(r.committed, res)
		return nil
	}}
	begun := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.result = NewTool(r.s, o).Run(ctx, call)
	}()
	synctest.Wait()
	if meanwhile != nil {
		meanwhile()
	}
	<-done
	r.took = time.Since(begun)
}

func TestToolResults(t *testing.T) {
	attach := func(r *ranTool) *Claim {
		c, ok := r.s.Attach("c")
		if !ok {
			r.t.Error("no claim")
		}
		return c
	}
	with := func(extra string) string { return strings.Replace(dbArgs, "{", "{"+extra+",", 1) }
	timed := ToolOptions{Timed: true, Default: 120}
	tests := []struct {
		name      string
		o         ToolOptions
		args      string
		provide   bool
		meanwhile func(*ranTool)
		want      string // the result begins so
		open      bool   // Unanswered
		commits   int
		took      time.Duration
	}{
		{name: "answered", o: timed, args: dbArgs, meanwhile: func(r *ranTool) {
			if ok, err := attach(r).Respond(t.Context(), pick("pg")); !ok || len(r.committed) != 1 {
				r.t.Errorf("%v, %v, committed %d", ok, err, len(r.committed))
			}
		}, want: `{"answers":[{"id":"db","selected":["pg"]}]}`, commits: 1},
		{name: "the default wait", o: timed, args: dbArgs, want: `{"pending":true,"callId":"c","message":"No answer yet. This is no skip and no approval`, open: true, commits: 1, took: 120 * time.Second},
		{name: "its own wait", o: timed, args: with(`"timeout":5`), want: `{"pending":true,`, open: true, commits: 1, took: 5 * time.Second},
		{name: "1e1 is a whole number", o: timed, args: with(`"timeout":1e1`), want: `{"pending":true,`, open: true, commits: 1, took: 10 * time.Second},
		{name: "capped", o: ToolOptions{Timed: true, Default: 5, Max: 7}, args: with(`"timeout":9`), want: `{"pending":true,`, open: true, commits: 1, took: 7 * time.Second},
		{name: "below the cap", o: ToolOptions{Timed: true, Default: 5, Max: 7}, args: dbArgs, want: `{"pending":true,`, open: true, commits: 1, took: 5 * time.Second},
		{name: "-1 under a cap", o: ToolOptions{Timed: true, Default: 5, Max: 7}, args: with(`"timeout":-1`), want: `{"pending":true,`, open: true, commits: 1, took: 7 * time.Second},
		{name: "-1 with nobody to ask", o: timed, args: with(`"timeout":-1`), want: "NO_PROVIDER: ", open: true},
		{name: "-1 by default", o: ToolOptions{Timed: true, Default: -1}, args: dbArgs, want: "NO_PROVIDER: ", open: true},
		{name: "-1 waits", o: timed, args: with(`"timeout":-1`), provide: true, meanwhile: func(r *ranTool) {
			time.Sleep(time.Hour)
			if card := attach(r).Card(); card.Timed || card.Kind != KindQuestion {
				r.t.Errorf("%+v", card)
			}
			if _, err := attach(r).Respond(t.Context(), pick("lite")); err != nil {
				r.t.Error(err)
			}
		}, want: `{"answers":`, commits: 1, took: time.Hour},
		{name: "closed by a client though it has a time", o: timed, args: dbArgs, meanwhile: func(r *ranTool) {
			if _, err := attach(r).Reject(t.Context(), CodeCancelled); err != nil {
				r.t.Error(err)
			}
		}, want: "ASK_CANCELLED: ", open: true, commits: 1},
		{name: "closed", o: ToolOptions{}, args: dbArgs, provide: true, meanwhile: func(r *ranTool) {
			if _, err := attach(r).Reject(t.Context(), CodeCancelled); err != nil {
				r.t.Error(err)
			}
		}, want: "ASK_CANCELLED: ", open: true, commits: 1},
		{name: "legacy with nobody to ask", args: dbArgs, want: "NO_PROVIDER: ", open: true},
		{name: "legacy knows no timeout", args: with(`"timeout":0`), want: "NO_PROVIDER: ", open: true},
		{name: "empty", o: timed, args: `{"questions":[],"timeout":0}`, want: "EMPTY_QUESTIONS: "},
		{name: "timeout 0", o: timed, args: `{"questions":[{"id":"","question":""}],"timeout":0}`, want: "BAD_TIMEOUT: timeout: 0 is out of range; it is a whole number from 1 to 2147483 seconds, or -1"},
		{name: "timeout -2", o: timed, args: with(`"timeout":-2`), want: "BAD_TIMEOUT: "},
		{name: "timeout 1.5", o: timed, args: with(`"timeout":1.5`), want: "BAD_TIMEOUT: timeout: 1.5 is out of range"},
		{name: "timeout too long", o: timed, args: with(`"timeout":2147484`), want: "BAD_TIMEOUT: timeout: 2147484 is out of range"},
		{name: "timeout 1e300", o: timed, args: with(`"timeout":1e300`), want: "BAD_TIMEOUT: timeout: 1e+300 is out of range"},
		{name: "bad questions", o: timed, args: `{"questions":[{"id":"a","question":""}]}`, want: "BAD_QUESTIONS: questions[0].question is blank"},
		{name: "a sub-agent", o: ToolOptions{Timed: true, Default: 5, Caller: func() Caller { return Caller{Live: true, Delegated: true} }}, args: dbArgs, want: "DELEGATED_CALLER: "},
		{name: "a dead agent", o: ToolOptions{Timed: true, Default: 5, Caller: func() Caller { return Caller{} }}, args: dbArgs, want: "CALLER_NOT_LIVE: "},
		{name: "a model does not set the detail", o: timed, args: `{"questions":[{"id":"a","question":"?","detail":"approve"}],"timeout":1}`, meanwhile: func(r *ranTool) {
			c := attach(r)
			if c.Card().Questions[0].Detail != "" {
				r.t.Error("it did")
			}
			c.Detach()
		}, want: `{"pending":true,`, open: true, commits: 1, took: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &ranTool{t: t, s: newService(t)}
				if tt.provide {
					defer r.s.Provide(everybody)()
				}
				r.run(t.Context(), tt.o, tt.args, func() {
					if tt.meanwhile != nil {
						tt.meanwhile(r)
					}
				})
				if !strings.HasPrefix(r.result.Content, tt.want) || (r.result.Unanswered == "c") != tt.open || r.took != tt.took {
					t.Errorf("%+v after %v, want %s…, unanswered %v, after %v", r.result, r.took, tt.want, tt.open, tt.took)
				}
				if wantCode, _, isErr := strings.Cut(tt.want, ": "); isErr && !strings.HasPrefix(tt.want, "{") && r.result.Code != wantCode {
					t.Errorf("code %q", r.result.Code)
				}
				if len(r.committed) != tt.commits || tt.commits == 1 && fmt.Sprint(r.committed[0]) != fmt.Sprint(r.result) {
					t.Errorf("committed %+v, returned %+v", r.committed, r.result)
				}
				empty(t, r.s)
			})
		})
	}
}

func TestPendingPermitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &ranTool{t: t, s: newService(t)}
		r.run(t.Context(), ToolOptions{Timed: true, Default: 1}, dbArgs, nil)
		for _, label := range []string{"pg", "lite"} {
			if strings.Contains(r.result.Content, label) {
				t.Errorf("it names the option %s: %s", label, r.result.Content)
			}
		}
		if id, ok := session.ParsePending(r.result.Content); !ok || id != "c" || !strings.Contains(r.result.Content, "names callId c.") {
			t.Error(r.result.Content)
		}
	})
}

func TestToolAskingAgain(t *testing.T) {
	s, root := late(t)
	root.message()
	root.call("again", dbArgs)
	res := NewTool(s, ToolOptions{Timed: true, Default: 60}).Run(t.Context(), tool.Call{ID: "again", Arguments: []byte(dbArgs)})
	if id, ok := session.ParsePending(res.Content); !ok || id != "c" || res.Code != "" || res.Unanswered != "c" {
		t.Errorf("%+v", res)
	}
	root.result("again", res.Content, "")
	if _, _, ok := s.State("again"); ok {
		t.Error("the second call is tracked beside the first")
	}
}

func TestCancelledToolCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &ranTool{t: t, s: newService(t)}
		r.run(ctx, ToolOptions{Timed: true, Default: 60}, dbArgs, cancel)
		if r.result.Code != CodeAborted || r.result.Unanswered != "c" || len(r.committed) != 1 || !strings.Contains(r.result.Content, "stays answerable under callId c") {
			t.Errorf("%+v", r.result)
		}
		r.run(ctx, ToolOptions{Timed: true, Default: 60}, `{"questions":[]}`, nil)
		if r.result.Code != CodeAborted || len(r.committed) != 1 {
			t.Errorf("%+v", r.result)
		}
	})
}

func TestToolWhoseResultCannotBeLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		call := tool.Call{ID: "c", Arguments: []byte(dbArgs), Commit: func(tool.Result) error { return errors.New("disk full") }}
		if res := NewTool(s, ToolOptions{Timed: true, Default: 1}).Run(t.Context(), call); res.Code != CodeLogWrite {
			t.Errorf("%+v", res)
		}
	})
}
