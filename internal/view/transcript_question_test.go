package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deepseek/internal/session"
)

func only(t *testing.T, tr *Transcript, kind string) []*Item {
	t.Helper()
	var out []*Item
	for _, turn := range tr.Turns {
		for _, i := range turn.Items {
			if i.Kind == kind {
				out = append(out, i)
			}
		}
	}
	return out
}

func batch(t *testing.T, label string) string {
	t.Helper()
	s, err := session.BatchText([]session.Answer{{ID: "port", Selected: []string{label}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhereAQuestionStands shows one question in each state that a log can
// leave it in, as JSON and as the line of its row.
func TestWhereAQuestionStands(t *testing.T) {
	chosen := session.Answer{ID: "port", Selected: []string{"9090"}}
	later := func(l *logged, text string) *logged { // a late answer that is admitted by a turn of its own
		m := reply(t, "late", askCall.ID, text)
		return l.queue(session.NextStep, m).begin(session.NextStep, m).says("", "ok").completes()
	}
	wentOn := func(l *logged) *logged {
		return l.task("x").says("", "", askCall).does(askCall, "", pending(t, askCall.ID), nil).completes()
	}
	for name, c := range map[string]struct {
		log      *logged
		live     bool
		state    string
		queued   bool
		late     bool
		answers  string
		row      string
		standing int // items of the lists active and settled
		settled  int
	}{
		"open while a run waits":             {newLogged(t).task("x").says("", "", askCall).starts(askCall), true, "open", false, false, "null", "open", 1, 0},
		"its turn has not come":              {newLogged(t).task("x").says("", "", askCall), true, "open", false, false, "null", "not asked yet", 0, 0},
		"open of a dead run is continued":    {newLogged(t).task("x").says("", "", askCall).starts(askCall), false, "continued", false, false, "null", "pending", 1, 0},
		"never started by a dead run":        {newLogged(t).task("x").says("", "", askCall), false, "removed", false, false, "null", "not answered: TOOL_NOT_STARTED", 0, 0},
		"pending":                            {wentOn(newLogged(t)), false, "continued", false, false, "null", "pending", 1, 0},
		"cancelled run":                      {newLogged(t).task("x").says("", "", askCall).does(askCall, "ASK_ABORTED", "ASK_ABORTED: cancelled", nil).completes(), false, "continued", false, false, "null", "pending", 1, 0},
		"answered":                           {newLogged(t).task("x").says("", "", askCall).does(askCall, "", batch(t, "8080"), nil).completes(), false, "settled", false, false, `[{"id":"port","selected":["8080"]}]`, "answered", 0, 1},
		"answered late":                      {later(wentOn(newLogged(t)), replyText(t, askCall.ID, chosen)), false, "settled", false, true, `[{"id":"port","selected":["9090"]}]`, "answered late", 0, 1},
		"late answer that cannot be read":    {later(wentOn(newLogged(t)), `{"kind":"answer_to_pen`), false, "settled", false, true, `[]`, "answered late", 0, 1},
		"late answer that names another":     {later(wentOn(newLogged(t)), replyText(t, "call_other", chosen)), false, "settled", false, true, `[]`, "answered late", 0, 1},
		"queued":                             {wentOn(newLogged(t)).queue(session.NextStep, reply(t, "q", askCall.ID, replyText(t, askCall.ID, chosen))), false, "continued", true, true, `[{"id":"port","selected":["9090"]}]`, "pending, an answer is queued, not yet delivered", 1, 0},
		"queued and taken back":              {wentOn(newLogged(t)).queue(session.NextStep, reply(t, "q", askCall.ID, replyText(t, askCall.ID, chosen))).add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextStep, RemovedCount: 1, Inserted: []session.UserMessage{}, Outcome: session.OutcomeCanceled}), false, "continued", false, false, "null", "pending", 1, 0},
		"claimed by a run that died":         {wentOn(newLogged(t)).queue(session.NextStep, reply(t, "q", askCall.ID, replyText(t, askCall.ID, chosen))).add(session.TypeTurnStart, session.TurnStart{Turn: 2}).add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextStep, RemovedCount: 1, Inserted: []session.UserMessage{}}), false, "continued", true, true, `[{"id":"port","selected":["9090"]}]`, "pending, an answer is queued, not yet delivered", 1, 0},
		"the same JSON pasted by a person":   {wentOn(newLogged(t)).task(replyText(t, askCall.ID, chosen)).completes(), false, "continued", false, false, "null", "pending", 1, 0},
		"asked again":                        {wentOn(newLogged(t)).task("y").says("", "", session.Call{ID: "again", Name: askCall.Name, Arguments: askCall.Arguments}).does(session.Call{ID: "again", Name: askCall.Name, Arguments: askCall.Arguments}, "", pending(t, askCall.ID), nil).completes(), false, "continued", false, false, "null", "pending", 1, 0},
		"refused":                            {newLogged(t).task("x").says("", "", askCall).does(askCall, "DELEGATED_CALLER", "DELEGATED_CALLER: a sub-agent cannot ask", nil).completes(), false, "removed", false, false, "null", "not answered: DELEGATED_CALLER", 0, 0},
		"answered in legacy mode":            {newLegacy(t).task("x").says("", "", askCall).does(askCall, "", batch(t, "8080"), nil).completes(), false, "settled", false, false, `[{"id":"port","selected":["8080"]}]`, "answered", 0, 0},
		"waiting in legacy mode":             {newLegacy(t).task("x").says("", "", askCall).starts(askCall), true, "open", false, false, "null", "open", 0, 0},
		"asked in legacy mode by a dead run": {newLegacy(t).task("x").says("", "", askCall).starts(askCall), false, "removed", false, false, "null", "not answered: TOOL_OUTCOME_UNKNOWN", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := c.log.build(c.live, nil)
			i := only(t, tr, KindQuestion)[0]
			answers, err := session.Marshal(i.Answers)
			if err != nil {
				t.Fatal(err)
			}
			if i.State != c.state || i.Queued != c.queued || i.Late != c.late || string(answers) != c.answers {
				t.Errorf("state %s, queued %v, late %v, answers %s", i.State, i.Queued, i.Late, answers)
			}
			if len(tr.Questions.Active) != c.standing || len(tr.Questions.Settled) != c.settled {
				t.Errorf("lists: %+v", tr.Questions)
			}
			if got := text(t, tr, TextOptions{}); !strings.Contains(got, "? call_00_q · "+c.row+"\n") {
				t.Errorf("no row %q in\n%s", c.row, got)
			}
			var m map[string]any
			raw, err := json.Marshal(i)
			if err == nil {
				err = json.Unmarshal(raw, &m)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"kind", "seq", "callId", "state", "queued", "questions", "late"} {
				if _, ok := m[key]; !ok {
					t.Errorf("%s is missing in %s", key, raw)
				}
			}
			if _, ok := m["answers"]; ok != (c.answers != "null") {
				t.Errorf("answers: %s", raw)
			}
		})
	}
}

func TestAskedAgainNamesTheFirstCall(t *testing.T) {
	again := session.Call{ID: "again", Name: askCall.Name, Arguments: askCall.Arguments}
	tr := newLogged(t).task("x").says("", "", askCall).does(askCall, "", pending(t, askCall.ID), nil).
		next().says("", "", again).does(again, "", pending(t, askCall.ID), nil).completes().build(false, nil)
	i := only(t, tr, KindQuestion)[1]
	if i.State != StateRemoved || i.SameAs != askCall.ID || !strings.Contains(text(t, tr, TextOptions{}), "asked already as "+askCall.ID) {
		t.Errorf("%+v", i)
	}
}

func TestAReplyRendersOnceWhereItWasAdmitted(t *testing.T) {
	tr := everything(t).build(false, nil)
	replies := only(t, tr, KindReply)
	if len(replies) != 1 || replies[0] != tr.Turns[1].Items[0] || replies[0].CallID != askCall.ID || len(replies[0].Questions) != 1 {
		t.Fatalf("%+v", replies)
	}
	got := text(t, tr, TextOptions{Expand: true})
	if strings.Count(got, "late answer to "+askCall.ID) != 1 || strings.Contains(got, "answer_to_pending_question") {
		t.Error(got)
	}
	if heading, reply := strings.Index(got, "turn 2"), strings.Index(got, "late answer to"); heading > reply {
		t.Error("the reply that opens a turn stands before its heading")
	}
}

func TestAReplyThatCannotBeReadShowsItsText(t *testing.T) {
	m := reply(t, "late", askCall.ID, `{"kind": broken`)
	tr := newLogged(t).task("x").says("", "", askCall).does(askCall, "", pending(t, askCall.ID), nil).completes().
		queue(session.NextStep, m).begin(session.NextStep, m).says("", "ok").completes().build(false, nil)
	if got := text(t, tr, TextOptions{Expand: true}); !strings.Contains(got, `{"kind": broken`) {
		t.Error(got)
	}
	if i := only(t, tr, KindReply)[0]; i.Text != `{"kind": broken` || i.Answers != nil {
		t.Errorf("%+v", i)
	}
}

func TestAPastedReplyIsAMessage(t *testing.T) {
	pasted := replyText(t, askCall.ID, session.Answer{ID: "port", Selected: []string{"9090"}})
	tr := newLogged(t).task(pasted).says("", "ok").completes().build(false, nil)
	if i := only(t, tr, KindUser); len(i) != 1 || i[0].Text != pasted || len(only(t, tr, KindReply)) != 0 {
		t.Errorf("%+v", i)
	}
}

// TestQuestionsAskedFromCode stand below the code that asked them, whatever
// else was logged in between.
func TestQuestionsAskedFromCode(t *testing.T) {
	code := session.Call{ID: "code", Name: "run_code", Arguments: `{"code":"…"}`}
	sub := func(n, name, args string) session.PTCStart {
		return session.PTCStart{RootCallID: "code", ParentCallID: "code", SubCallID: "code:ptc:" + n, Name: name, Arguments: args}
	}
	l := newLogged(t).task("x").says("", "", code, readCall).starts(code).
		add(session.TypePTCDispatchStart, sub("1", "read", readCall.Arguments)).
		add(session.TypePTCDispatchStart, sub("2", session.AskTool, askCall.Arguments)).
		add(session.TypePTCDispatch, session.PTC{PTCStart: sub("1", "read", readCall.Arguments), Content: "text"}).
		add(session.TypePTCDispatch, session.PTC{PTCStart: sub("2", session.AskTool, askCall.Arguments), Content: pending(t, "code:ptc:2")}).
		result(code, "", "return: 1", nil).does(readCall, "", "text", nil).completes()
	tr := l.build(false, nil)
	var order []string
	for _, i := range tr.Turns[0].Items {
		if i.CallID != "" {
			order = append(order, i.Kind+" "+i.CallID+" "+i.Parent)
		}
	}
	want := []string{"tool code ", "tool code:ptc:1 code", "question code:ptc:2 code", "tool call_1 "}
	if !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
	if q := only(t, tr, KindQuestion)[0]; q.State != "continued" {
		t.Errorf("%+v", q)
	}
}

func TestNotes(t *testing.T) {
	tr := newLogged(t).task("x").
		add(session.TypeGoalChange, session.GoalChange{Goal: &session.Goal{ID: "g", Revision: 2, Objective: "ship it", Phase: "active"}}).
		add(session.TypePlanMode, session.PlanMode{Active: true}).
		add(session.TypeCompactionEnd, session.CompactionEnd{Error: &session.ErrorInfo{Code: "SERVER", Message: "overloaded"}}).
		add(session.TypeCompactionEnd, session.CompactionEnd{OK: true}).
		add(session.TypeCompactionPrune, session.CompactionPrune{Seqs: []int64{1, 2}}).
		add(session.TypeApprovalAsked, session.ApprovalAsked{CallID: "c", Title: "rm -r build"}).
		add(session.TypeApprovalDecided, session.ApprovalDecided{CallID: "c", Decision: session.DecisionDenied, Message: "nobody could be asked"}).
		add(session.TypeApprovalAsked, session.ApprovalAsked{CallID: "d", Title: "make it"}).
		add(session.TypeApprovalDecided, session.ApprovalDecided{CallID: "d", Decision: session.DecisionDenied, Canceled: true}).
		add(session.TypeSubagent, map[string]any{"sessionId": "child", "description": "look"}).
		add(session.TypeTitle, map[string]any{"title": "a title"}).
		says("", "done").completes().
		add(session.TypeGoalChange, session.GoalChange{}).
		build(false, nil)
	folded, expanded := text(t, tr, TextOptions{}), text(t, tr, TextOptions{Expand: true})
	for _, want := range []string{
		"goal active (revision 2): ship it", "plan mode", "could not be summed up: SERVER: overloaded",
		"approval denied: rm -r build", "approval not decided, the run was cancelled: make it", "sub-agent child: look", "goal cleared",
	} {
		if !strings.Contains(folded, want) {
			t.Errorf("no %q in\n%s", want, folded)
		}
	}
	for _, want := range []string{"2 older results left out", "title a title", "nobody could be asked"} {
		if !strings.Contains(expanded, want) || strings.Contains(folded, want) {
			t.Errorf("%q should show expanded only:\n%s", want, expanded)
		}
	}
	if i := only(t, tr, KindNote); i[len(i)-1].Text != "goal cleared" {
		t.Errorf("what was noted after the last turn is not in it: %+v", i[len(i)-1])
	}
}

// TestTheCommandOfAQuestionIsNotBroken: it is there to be copied.
func TestTheCommandOfAQuestionIsNotBroken(t *testing.T) {
	l := newLogged(t).task("x").says("", "", askCall).starts(askCall)
	const command = "deepseek answer 20261130-171203-7f3kq call_00_q"
	for columns, want := range map[int]string{0: "  answer with: " + command, 80: "  answer with: " + command, 40: "  answer with:\n    " + command} {
		got := text(t, l.build(true, nil), TextOptions{Width: columns, Terminal: columns > 0, Answer: func(string) string { return command }})
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("%d columns:\n%s", columns, got)
		}
	}
}
