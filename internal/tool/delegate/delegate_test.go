package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/delegate"
)

func call(ctx context.Context, t tool.Tool, arguments string) tool.Result {
	return t.Run(ctx, tool.Call{ID: "c1", Arguments: json.RawMessage(arguments)})
}

func reports(r delegate.Report, err error) delegate.Runner {
	return func(context.Context, delegate.Task) (delegate.Report, error) { return r, err }
}

const good = `{"description":"look","prompt":"look around"}`

func TestSchemaIsSoundAndSmall(t *testing.T) {
	r, err := tool.NewRegistry(delegate.New(0, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	s := r.Specs()[0]
	if n := len(s.Description) + len(s.Parameters); s.Name != delegate.Name || n >= 500 {
		t.Errorf("%s has %d bytes", s.Name, n)
	}
	if tr := delegate.New(0, nil).Traits(); !tr.Parallel || tr.ReadOnly || tr.Person || tr.TopLevel {
		t.Errorf("%+v", tr)
	}
}

func TestWhatTheModelReads(t *testing.T) {
	report := func(kind, said string, steps int) delegate.Report {
		return delegate.Report{SessionID: "S1", Result: session.RunResult{FinalResponse: said, Steps: steps}, End: session.Reason{Kind: kind}}
	}
	failed := report(session.EndError, "so far", 1)
	failed.End.Error = &session.ErrorInfo{Code: "QUOTA", Message: "no money left."}
	for _, c := range []struct {
		name string
		r    delegate.Report
		err  error
		code string
		want string
	}{
		{"completed", report(session.EndCompleted, "three files\n", 3), nil, "", "three files\n[sub-agent S1: completed, 3 steps]"},
		{"completed without a word", report(session.EndCompleted, "", 1), nil, "", "[sub-agent S1: completed, 1 step]"},
		{
			"max-steps", report(session.EndMaxSteps, "half of it", 7), nil, "SUBAGENT_MAX_STEPS",
			"SUBAGENT_MAX_STEPS: the sub-agent reached its limit of 7 steps. What it did stands.\nWhat it said last:\nhalf of it\n[sub-agent S1: max-steps, 7 steps]",
		},
		{
			"max-tokens", report(session.EndMaxTokens, "", 2), nil, "SUBAGENT_MAX_TOKENS",
			"SUBAGENT_MAX_TOKENS: the sub-agent's answer was cut at its token limit. What it did stands.\n[sub-agent S1: max-tokens, 2 steps]",
		},
		{
			"error", failed, nil, "SUBAGENT_ERROR",
			"SUBAGENT_ERROR: the sub-agent failed: QUOTA: no money left. What it did stands.\nWhat it said last:\nso far\n[sub-agent S1: error, 1 step]",
		},
		{
			"cancelled by itself", report(session.EndAborted, "", 1), nil, "SUBAGENT_ABORTED",
			"SUBAGENT_ABORTED: the sub-agent was cancelled. What it did stands.\n[sub-agent S1: aborted, 1 step]",
		},
		{
			"its log failed", report(session.EndCompleted, "done", 1), errors.New("disk full"), "SUBAGENT_ERROR",
			"SUBAGENT_ERROR: the sub-agent failed: disk full. What it did stands.\nWhat it said last:\ndone\n[sub-agent S1: completed, 1 step]",
		},
		{
			"no turn ended",
			delegate.Report{SessionID: "S1"},
			nil, "SUBAGENT_ERROR",
			"SUBAGENT_ERROR: the sub-agent did not complete. What it did stands.\n[sub-agent S1: no turn ended, 0 steps]",
		},
		{"not begun", delegate.Report{}, errors.New("disk full"), "SUBAGENT_ERROR", "SUBAGENT_ERROR: no sub-agent could be begun: disk full. Nothing was done."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := call(t.Context(), delegate.New(0, reports(c.r, c.err)), good)
			if got.Code != c.code || got.Content != c.want {
				t.Errorf("%s\n%s", got.Code, got.Content)
			}
			if c.r.SessionID != "" && (got.Meta == nil || got.Meta.FinishReason != c.r.End.Kind) {
				t.Errorf("meta %+v", got.Meta)
			}
		})
	}
}

func TestACancelledRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := delegate.Report{SessionID: "S1", End: session.Reason{Kind: session.EndAborted}}
	if got := call(ctx, delegate.New(0, reports(r, nil)), good); got.Code != tool.CodeAborted || !strings.HasSuffix(got.Content, "[sub-agent S1: aborted, 0 steps]") {
		t.Errorf("%+v", got)
	}
	if got := call(ctx, delegate.New(0, reports(delegate.Report{}, context.Canceled)), good); got.Code != tool.CodeAborted {
		t.Errorf("%+v", got)
	}
}

func TestCallsThatAreRefused(t *testing.T) {
	never := func(context.Context, delegate.Task) (delegate.Report, error) {
		t.Error("a sub-agent was begun")
		return delegate.Report{}, nil
	}
	for _, c := range []struct {
		depth           int
		arguments, want string
	}{
		{0, `{"description":" \n","prompt":"x"}`, "INVALID_ARGUMENTS: description: is blank"},
		{0, `{"description":"x","prompt":" "}`, "INVALID_ARGUMENTS: prompt: is blank"},
		{3, good, "DELEGATION_DEPTH: sub-agents may be nested 3 deep, and this session is at depth 3."},
		{9, good, "DELEGATION_DEPTH: "},
	} {
		if got := call(t.Context(), delegate.New(c.depth, never), c.arguments); got.Code == "" || !strings.HasPrefix(got.Content, c.want) {
			t.Errorf("%s: %+v", c.arguments, got)
		}
	}
}

func TestTheDescriptionIsOneShortLineAndThePromptAsItIs(t *testing.T) {
	var seen delegate.Task
	run := func(_ context.Context, task delegate.Task) (delegate.Report, error) {
		seen = task
		return delegate.Report{SessionID: "S1", End: session.Reason{Kind: session.EndCompleted}}, nil
	}
	long := strings.Repeat("wide ", 100)
	call(t.Context(), delegate.New(2, run), `{"description":"a\n b  `+long+`","prompt":" a\nb "}`)
	if !strings.HasPrefix(seen.Description, "a b wide") || len([]rune(seen.Description)) != 100 || seen.Prompt != " a\nb " || seen.CallID != "c1" {
		t.Errorf("%q %q", seen.Description, seen.Prompt)
	}
}
