package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// reviewed runs one review that ends so, and returns what happened in its order.
func reviewed(t *testing.T, o question.Outcome, leave error) (tool.Result, []string) {
	t.Helper()
	var happened []string
	env := Env{
		Active: func() bool { return true },
		Leave:  func(context.Context) error { happened = append(happened, "left"); return leave },
		Redact: func(s string) string { return strings.ReplaceAll(s, "KEY", "[key]") },
		Ask: func(_ context.Context, r question.Request) question.Outcome {
			q := r.Questions[0]
			if r.Kind != question.KindPlanReview || r.Intent.Kind != "plan-review" || r.Intent.Approve != q.Options[0].Label || q.Detail != "use [key]" || r.CallID != "c" {
				t.Errorf("%+v", r)
			}
			if err := r.Commit(o); err != nil {
				return question.Outcome{Err: &question.Error{Code: question.CodeLogWrite, Message: err.Error()}}
			}
			return o
		},
	}
	r, err := tool.NewRegistry(New(env))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	tl, args, bad := r.Check(Name, `{"plan":"use KEY"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	var committed tool.Result
	res := tl.Run(t.Context(), tool.Call{ID: "c", Arguments: args, Commit: func(r tool.Result) error {
		happened, committed = append(happened, "committed"), r
		return nil
	}})
	if slices.Contains(happened, "committed") && committed.Content != res.Content {
		t.Errorf("committed %q, returned %q", committed.Content, res.Content)
	}
	return res, happened
}

func picked(label, words string) question.Outcome {
	return question.Outcome{Answers: []session.Answer{{ID: questionID, Selected: []string{label}, Custom: words}}}
}

func TestOnlyTheBareApprovalApproves(t *testing.T) {
	failed := func(code string) question.Outcome {
		return question.Outcome{Err: &question.Error{Code: code, Message: "m."}}
	}
	for _, c := range []struct {
		name    string
		outcome question.Outcome
		left    bool
		code    string
		says    string
	}{
		{"approve", picked(LabelApprove, ""), true, "", "approved"},
		{"approve with words", picked(LabelApprove, "but"), false, "", "said: but"},
		{"decline", picked(LabelDecline, ""), false, "", "declined the plan."},
		{"decline with words", picked(LabelBecause, "w"), false, "", "because: w"},
		{"words only", question.Outcome{Answers: []session.Answer{{ID: questionID, Selected: []string{}, Custom: LabelApprove}}}, false, "", "declined"},
		{"a skip", question.Outcome{Answers: []session.Answer{{ID: questionID, Selected: []string{}}}}, false, "", "declined"},
		{"both", question.Outcome{Answers: []session.Answer{{ID: questionID, Selected: []string{LabelApprove, LabelDecline}}}}, false, "", "declined"},
		{"another question's", question.Outcome{Answers: []session.Answer{{ID: "x", Selected: []string{LabelApprove}}}}, false, "", "declined"},
		{"no answer at all", question.Outcome{}, false, "", "declined"},
		{"pending", question.Outcome{Pending: true}, false, "", "declined"},
		{"pending with an answer", question.Outcome{Pending: true, Answers: picked(LabelApprove, "").Answers}, false, "", "declined"},
		{"an error with an answer", question.Outcome{Err: &question.Error{Code: "X", Message: "m"}, Answers: picked(LabelApprove, "").Answers}, false, "X", "not approved"},
		{"nobody to ask", failed(question.CodeNoProvider), false, question.CodeNoProvider, "final response"},
		{"closed", failed(question.CodeCancelled), false, question.CodeCancelled, "not approved"},
		{"cancelled", failed(question.CodeAborted), false, question.CodeAborted, "not approved"},
		{"a sub-agent", failed(question.CodeDelegated), false, question.CodeDelegated, "not approved"},
	} {
		res, happened := reviewed(t, c.outcome, nil)
		want := []string{"committed"}
		if c.left {
			want = []string{"left", "committed"}
		}
		if !slices.Equal(happened, want) || res.Code != c.code || !strings.Contains(res.Content, c.says) {
			t.Errorf("%s: %v, %+v", c.name, happened, res)
		}
	}
}

func TestAnApprovalThatIsNotOnDiskIsNone(t *testing.T) {
	res, happened := reviewed(t, picked(LabelApprove, ""), errors.New("no space left on device"))
	if res.Code != question.CodeLogWrite || slices.Contains(happened, "committed") {
		t.Errorf("%v, %+v", happened, res)
	}
}

func TestPlanModeOffersOnlyWhatReads(t *testing.T) {
	named := func(name string) tool.Tool {
		return tool.Define(tool.Definition{Name: name, Schema: `{"type":"object"}`, Traits: tool.Traits{ReadOnly: true}},
			func(context.Context, tool.Call, struct{}) tool.Result { return tool.Result{} })
	}
	var all []tool.Tool
	for _, name := range []string{
		"read", "write", "edit", "glob", "grep", "bash", "job_output", "job_list", "job_kill", "todo_write",
		"run_code", "delegate", "get_goal", "create_goal", "update_goal", "mcp__read__read", "ask_user_question",
	} {
		all = append(all, named(name))
	}
	r, err := tool.NewRegistry(all...)
	if err != nil {
		t.Fatal(err)
	}
	offered, err := Offer(r, Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(offered.Names(), " "); got != "read glob grep todo_write get_goal ask_user_question exit_plan_mode" {
		t.Error(got)
	}
}
