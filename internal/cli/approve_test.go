package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deepseek/internal/permission"
	"deepseek/internal/question"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// liveRoot is a root agent with nothing to say.
type liveRoot struct{ question.Root }

func (liveRoot) View(f func(*session.State)) { f(&session.State{}) }

// desk is an approver, its log, and a person who answers by what they are shown.
type desk struct {
	t        *testing.T
	service  *question.Service
	approver *approver

	mu      sync.Mutex
	log     []string
	asked   []question.Card
	logFail map[string]error // by event type
}

func newDesk(t *testing.T, never bool) *desk {
	d := &desk{t: t, service: question.New("s", question.SystemClock{}), logFail: map[string]error{}}
	d.service.Bind(liveRoot{})
	d.approver = &approver{questions: d.service, record: d.record, never: func() bool { return never }, key: redact.New("sk-secret-key")}
	return d
}

func (d *desk) record(_ context.Context, typ string, data any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	raw, err := json.Marshal(data)
	if err == nil {
		err = d.logFail[typ]
	}
	if err == nil {
		d.log = append(d.log, typ+" "+string(raw))
	}
	return err
}

// person answers every approval that opens.
func (d *desk) person(label, words string) {
	d.t.Cleanup(d.service.Provide(func(question.Card) bool { return true }))
	d.t.Cleanup(d.service.Watch(func(ev question.Event) {
		if ev.Type != question.Opened {
			return
		}
		d.mu.Lock()
		d.asked = append(d.asked, ev.Card)
		d.mu.Unlock()
		claim, ok := d.service.Attach(ev.Card.CallID)
		if !ok {
			d.t.Error("no wait")
			return
		}
		go func() {
			_, _ = claim.Respond(context.Background(), []session.Answer{{ID: question.ApprovalID, Selected: []string{label}, Custom: words}})
		}()
	}))
}

var gitPush = permission.Request{
	Tool: "bash", CallID: "call_1", Title: "run a command", Detail: "git push sk-secret-key", Prefix: "git push", Reason: "This session is read-only",
}

func TestApprovalIsLoggedAndDecided(t *testing.T) {
	for _, c := range []struct {
		name, label, words string
		decision           string
		allowed, session   bool
		message            string
	}{
		{"no", question.LabelNo, "", session.DecisionDenied, false, false, "This session is read-only. The user said no. Nothing was done."},
		{"no, because", question.LabelBecause, "Push it yourself.", session.DecisionDenied, false, false, "The user said no, because: Push it yourself. Nothing"},
		{"yes, once", question.LabelOnce, "", session.DecisionOnce, true, false, ""},
		{"yes, for this session", question.LabelSession + "git push", "", session.DecisionSession, true, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, false)
			d.person(c.label, c.words)
			got := d.approver.Approve(t.Context(), gitPush)
			if got.Allowed != c.allowed || got.ForSession != c.session || !strings.Contains(got.Message, c.message) {
				t.Fatalf("%+v", got)
			}
			log := strings.Join(d.log, "\n")
			if len(d.log) != 2 || !strings.HasPrefix(d.log[0], "approval/asked") || !strings.Contains(d.log[1], `"decision":"`+c.decision+`"`) {
				t.Fatal(log)
			}
			if strings.Contains(d.log[1], `"prefix":"git push"`) != c.session {
				t.Fatal(log)
			}
			card := d.asked[0]
			if card.CallID != "call_1:approval" || card.Kind != question.KindApproval || card.Timed || card.Questions[0].Detail != "git push [key]" {
				t.Fatalf("%+v", card)
			}
			if strings.Contains(log, "sk-secret-key") {
				t.Fatal("the key is in the log: " + log)
			}
		})
	}
}

func TestNobodyToAskAndNeverAreDenied(t *testing.T) {
	for _, never := range []bool{false, true} {
		d := newDesk(t, never)
		if never {
			d.person(question.LabelOnce, "")
		}
		got := d.approver.Approve(t.Context(), gitPush)
		want := map[bool]string{false: "nobody could be asked", true: "--approve never"}[never]
		if got.Allowed || !strings.Contains(got.Message, want) || len(d.log) != 2 || !strings.Contains(d.log[1], `"denied"`) || len(d.asked) != 0 {
			t.Errorf("never %v: %+v %v", never, got, d.log)
		}
	}
}

func TestCancelWhileAskedIsLoggedAsDeniedByNobody(t *testing.T) {
	d := newDesk(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(d.service.Provide(func(question.Card) bool { return true }))
	t.Cleanup(d.service.Watch(func(ev question.Event) { cancel() }))
	if got := d.approver.Approve(ctx, gitPush); got.Allowed || len(d.log) != 2 || !strings.Contains(d.log[1], `"denied"`) || !strings.Contains(d.log[1], `"canceled":true`) {
		t.Fatalf("%+v %v", got, d.log)
	}
}

func TestAYesThatIsNotOnDiskIsANo(t *testing.T) {
	for _, typ := range []string{session.TypeApprovalAsked, session.TypeApprovalDecided} {
		d := newDesk(t, false)
		d.person(question.LabelSession+"git push", "")
		d.logFail[typ] = errors.New("disk full")
		if got := d.approver.Approve(t.Context(), gitPush); got.Allowed || got.ForSession || !strings.Contains(got.Message, "disk full") {
			t.Errorf("%s: %+v", typ, got)
		}
	}
}

func TestScriptedAnswersNeverApprove(t *testing.T) {
	d := newDesk(t, false)
	path := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(path, []byte("- match: {question: '.*'}\n  select: ['yes, once']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := question.LoadAnswers(path)
	if err != nil {
		t.Fatal(err)
	}
	stop := script.Serve(d.service, func(err error) { t.Error(err) })
	defer stop()
	if got := d.approver.Approve(t.Context(), gitPush); got.Allowed || !strings.Contains(got.Message, "nobody could be asked") {
		t.Fatalf("%+v", got)
	}
}

// The wait of an approval is neither the call's own nor that of its last
// approval, and a question that waits under the call's id keeps its answer.
func TestApprovalsOfOneCallAndAQuestionDoNotMix(t *testing.T) {
	d := newDesk(t, false)
	opened := make(chan string, 3)
	t.Cleanup(d.service.Provide(func(question.Card) bool { return true }))
	t.Cleanup(d.service.Watch(func(ev question.Event) {
		if ev.Type == question.Opened {
			opened <- ev.Card.CallID
		}
	}))
	asks := make(chan question.Outcome, 1)
	go func() {
		asks <- d.service.Ask(t.Context(), question.Request{
			CallID: "call_1", Kind: question.KindLegacy, Caller: question.Caller{Live: true},
			Questions: []session.Question{{ID: question.ApprovalID, Question: "Approve?", Options: []session.Option{{Label: question.LabelOnce}}}},
		})
	}()
	<-opened
	respond := func(id, label string) {
		t.Helper()
		claim, ok := d.service.Attach(id)
		if !ok {
			t.Fatalf("%s does not wait", id)
		}
		if ok, err := claim.Respond(t.Context(), []session.Answer{{ID: question.ApprovalID, Selected: []string{label}}}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	for i, want := range []string{"call_1:approval", "call_1:approval:2"} {
		got := make(chan permission.Decision, 1)
		go func() { got <- d.approver.Approve(t.Context(), gitPush) }()
		if id := <-opened; id != want {
			t.Fatalf("the wait is %s, not %s", id, want)
		}
		if n := len(d.service.Waits()); n != 2 {
			t.Fatalf("%d waits", n)
		}
		respond(want, []string{question.LabelOnce, question.LabelNo}[i])
		if d := <-got; d.Allowed != (i == 0) {
			t.Fatalf("%s: %+v", want, d)
		}
	}
	respond("call_1", question.LabelOnce)
	if o := <-asks; o.Err != nil || len(o.Answers) != 1 {
		t.Fatalf("%+v", o)
	}
}

func TestSubAgentIsNamedOnTheCard(t *testing.T) {
	d := newDesk(t, false)
	d.approver.child = "look for leaks"
	d.person(question.LabelOnce, "")
	d.approver.Approve(t.Context(), gitPush)
	if got := d.asked[0].Questions[0].Question; !strings.Contains(got, `run a command (asked by the sub-agent "look for leaks")`) {
		t.Fatal(got)
	}
}

// A terminal that fails leaves nobody who may answer an approval.
func TestApprovalOfATerminalThatFailsIsDenied(t *testing.T) {
	d := newDesk(t, false)
	as := &asking{o: &owner{questions: d.service}}
	t.Cleanup(d.service.Provide(as.offers))
	t.Cleanup(d.service.Watch(func(ev question.Event) {
		if ev.Type == question.Opened {
			go as.giveUp(ev.Card.CallID)
		}
	}))
	for i := range 2 {
		if got := d.approver.Approve(t.Context(), gitPush); got.Allowed || !strings.Contains(got.Message, "nobody could be asked") {
			t.Fatal(fmt.Sprint(i), got)
		}
	}
}
