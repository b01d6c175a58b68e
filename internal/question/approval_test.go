package question

import (
	"strings"
	"testing"

	"deepseek/internal/session"
)

func TestOnlyABareYesIsAYes(t *testing.T) {
	answer := func(custom string, selected ...string) Outcome {
		return Outcome{Answers: []session.Answer{{ID: ApprovalID, Selected: selected, Custom: custom}}}
	}
	a := Approval{Title: "run a command", Prefix: "go test"}
	for _, c := range []struct {
		name    string
		o       Outcome
		allowed bool
		session bool
		because string
	}{
		{"no", answer("", LabelNo), false, false, "The user said no"},
		{"no with words", answer(" use make ", LabelBecause), false, false, "The user said no, because: use make"},
		{"yes", answer("", LabelOnce), true, false, ""},
		{"yes for the session", answer("", LabelSession+"go test"), true, true, ""},
		{"yes for another prefix", answer("", LabelSession+"go"), false, false, "The user said no"},
		{"yes with a condition", answer("only in ./x", LabelOnce), false, false, "only in ./x"},
		{"nothing selected", answer(""), false, false, "did not say yes"},
		{"words alone", answer("yes, once"), false, false, "did not say yes"},
		{"two labels", answer("", LabelNo, LabelOnce), false, false, "did not say yes"},
		{"another question", Outcome{Answers: []session.Answer{{ID: "x", Selected: []string{LabelOnce}}}}, false, false, "did not say yes"},
		{"no answer", Outcome{}, false, false, "did not say yes"},
		{"pending", Outcome{Pending: true}, false, false, "did not say yes"},
		{"pending with an answer", Outcome{Pending: true, Answers: answer("", LabelOnce).Answers}, false, false, "did not say yes"},
		{"error with an answer", Outcome{Err: noProvider(), Answers: answer("", LabelOnce).Answers}, false, false, "nobody could be asked"},
		{"nobody", Outcome{Err: noProvider()}, false, false, "nobody could be asked"},
		{"closed", Outcome{Err: errorf(CodeCancelled, "x")}, false, false, "closed the card"},
		{"cancelled", Outcome{Err: aborted(Request{Kind: KindApproval, CallID: "c"})}, false, false, "cancelled"},
		{"any error", Outcome{Err: errorf(CodeDuplicateWait, "twice")}, false, false, "DUPLICATE_WAIT: twice"},
	} {
		v := a.Verdict(c.o)
		if v.Allowed != c.allowed || v.ForSession != c.session || !strings.Contains(v.Because, c.because) || v.Allowed != (v.Because == "") {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	if (Approval{}).Verdict(answer("", LabelSession)).Allowed {
		t.Error("a yes for a prefix that was not offered")
	}
}

func TestApprovalOptionsInOrder(t *testing.T) {
	for _, c := range []struct {
		prefix string
		want   string
	}{
		{"", "no|no, because…|yes, once"},
		{"go test", "no|no, because…|yes, once|yes, for this session: go test"},
		{"ls ./...", "no|no, because…|yes, once|yes, for this session: ls ./..."},
		{"echo 'a\nb'", "no|no, because…|yes, once"},
		{strings.Repeat("x", maxPrefix+1), "no|no, because…|yes, once"},
	} {
		q := Approval{Title: "t", Reason: "r", Detail: "d", Prefix: c.prefix}.Question()
		var labels []string
		for _, o := range q.Options {
			labels = append(labels, o.Label)
		}
		if got := strings.Join(labels, "|"); got != c.want || q.Question != "t\nr" || q.Detail != "d" {
			t.Errorf("%q: %s, %+v", c.prefix, got, q)
		}
		if err := session.CheckQuestions([]session.Question{q}); err != nil {
			t.Error(err)
		}
	}
}
