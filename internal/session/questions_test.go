package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	oneQuestion   = `{"questions":[{"id":"db","question":"Which?","options":[{"label":"pg"},{"label":"lite"}]}]}`
	otherQuestion = `{"questions":[{"id":"name","question":"What name?"}]}`
	answered      = `{"answers":[{"id":"db","selected":["pg"]}]}`
)

var pg = []Answer{{ID: "db", Selected: []string{"pg"}}}

// log builds events; Seq and Time count up.
type log struct {
	t      *testing.T
	events []Event
}

func (l *log) add(typ string, data any) *log {
	l.t.Helper()
	e, err := NewEvent(typ, 1000+int64(len(l.events)), data)
	if err != nil {
		l.t.Fatal(err)
	}
	e.Seq = int64(len(l.events))
	l.events = append(l.events, e)
	return l
}

func newLog(t *testing.T) *log { return &log{t: t} }

func (l *log) header(schema string) *log {
	return l.add(TypeRequestHeader, RequestHeader{Header: HeaderBody{Tools: []ToolSpec{
		{Name: "run_code", Parameters: json.RawMessage(`{"properties":{"timeout":{}}}`)},
		{Name: AskTool, Parameters: json.RawMessage(schema)},
	}}, Reason: HeaderInitial})
}

func (l *log) timed() *log {
	return l.header(`{"type":"object","properties":{"questions":{},"timeout":{"type":"number"}}}`)
}

func (l *log) legacy() *log {
	return l.header(`{"type":"object","properties":{"questions":{"description":"no timeout"}}}`)
}

func (l *log) message() *log { return l.add(TypeAssistantMessage, AssistantMessage{}) }

func (l *log) call(id, args string) *log {
	return l.add(TypeToolCall, ToolCall{CallID: id, Name: AskTool, Arguments: args})
}

func (l *log) result(id, content string) *log {
	return l.add(TypeToolResult, ToolResult{Message: ToolMessage{ToolCallID: id, Content: content}})
}

func (l *log) failed(id, code string) *log {
	return l.add(TypeToolResult, ToolResult{
		Message: ToolMessage{ToolCallID: id, Content: code + ": words", IsError: true}, Error: &ToolError{Name: AskTool, Code: code},
	})
}

func (l *log) start(parent, sub, args string) *log {
	return l.add(TypePTCDispatchStart, PTCStart{RootCallID: parent, ParentCallID: parent, SubCallID: sub, Name: AskTool, Arguments: args})
}

func (l *log) dispatch(parent, sub, content, code string) *log {
	p := PTC{PTCStart: PTCStart{RootCallID: parent, ParentCallID: parent, SubCallID: sub, Name: AskTool}, Content: content}
	if code != "" {
		p.IsError, p.Error, p.Content = true, &ToolError{AskTool, code}, code+": words"
	}
	return l.add(TypePTCDispatch, p)
}

func (l *log) reply(id, text string) *log {
	return l.add(TypeUserMessage, NewUserMessage("m", text, Source{Kind: SourceQuestionReply, CallID: id, Outcome: "answered"}))
}

func pendingOf(t *testing.T, id string) string {
	t.Helper()
	s, err := PendingText(id, "later")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replyOf(t *testing.T, id string) string {
	t.Helper()
	qs, _, _ := ParseQuestions(oneQuestion)
	s, err := ReplyText(id, qs, pg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fold(t *testing.T, events []Event) *Questions {
	t.Helper()
	q := &Questions{}
	for _, e := range events {
		if err := q.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func TestQuestionStates(t *testing.T) {
	open := func(t *testing.T) *log { return newLog(t).timed().message().call("c", oneQuestion) }
	fromCode := func(t *testing.T) *log { return newLog(t).timed().message().start("p", "p:ptc:1", oneQuestion) }
	continuedOne := func(t *testing.T) *log { return open(t).result("c", pendingOf(t, "c")) }
	tests := []struct {
		name string
		log  func(*testing.T) *log
		id   string
		want QuestionState // "" = unknown
	}{
		{"timed call opens", open, "c", QuestionOpen},
		{"legacy call is not tracked", func(t *testing.T) *log { return newLog(t).legacy().call("c", oneQuestion) }, "c", ""},
		{"no header, not tracked", func(t *testing.T) *log { return newLog(t).call("c", oneQuestion) }, "c", ""},
		{"a later header turns tracking off", func(t *testing.T) *log { return newLog(t).timed().legacy().call("c", oneQuestion) }, "c", ""},
		{"a later header leaves what is open", func(t *testing.T) *log { return open(t).legacy() }, "c", QuestionOpen},
		{"results count under a later header", func(t *testing.T) *log { return open(t).legacy().result("c", pendingOf(t, "c")) }, "c", QuestionContinued},
		{"blocking call of timed mode opens", func(t *testing.T) *log {
			return newLog(t).timed().call("c", strings.Replace(oneQuestion, "{", `{"timeout":-1,`, 1))
		}, "c", QuestionOpen},
		{"arguments that are no JSON", func(t *testing.T) *log { return newLog(t).timed().call("c", `{"questions":[`) }, "c", ""},
		{"arguments of the wrong type", func(t *testing.T) *log { return newLog(t).timed().call("c", `{"questions":"?"}`) }, "c", ""},
		{"no questions", func(t *testing.T) *log { return newLog(t).timed().call("c", `{"questions":[]}`) }, "c", ""},
		{"questions that are refused", func(t *testing.T) *log {
			return newLog(t).timed().call("c", `{"questions":[{"id":"a","question":" "}]}`)
		}, "c", ""},
		{"another tool", func(t *testing.T) *log {
			return newLog(t).timed().add(TypeToolCall, ToolCall{CallID: "c", Name: "bash", Arguments: `{"command":"ask_user_question"}`})
		}, "c", ""},

		{"pending continues", continuedOne, "c", QuestionContinued},
		{"pending that names another call removes", func(t *testing.T) *log { return open(t).result("c", pendingOf(t, "b")) }, "c", ""},
		{"unknown outcome continues", func(t *testing.T) *log { return open(t).failed("c", CodeOutcomeUnknown) }, "c", QuestionContinued},
		{"abort continues", func(t *testing.T) *log { return open(t).failed("c", CodeAskAborted) }, "c", QuestionContinued},
		{"the code counts from the text alone", func(t *testing.T) *log {
			return open(t).add(TypeToolResult, ToolResult{Message: ToolMessage{ToolCallID: "c", Content: "ASK_ABORTED: words", IsError: true}})
		}, "c", QuestionContinued},
		{"another error removes", func(t *testing.T) *log { return open(t).failed("c", "ASK_CANCELLED") }, "c", ""},
		{"answers settle", func(t *testing.T) *log { return open(t).result("c", answered) }, "c", QuestionSettled},
		{"answers to another question remove", func(t *testing.T) *log { return open(t).result("c", `{"answers":[{"id":"x","selected":[]}]}`) }, "c", ""},
		{"a label it does not have removes", func(t *testing.T) *log { return open(t).result("c", `{"answers":[{"id":"db","selected":["ora"]}]}`) }, "c", ""},
		{"null answers remove", func(t *testing.T) *log { return open(t).result("c", `{"answers":null}`) }, "c", ""},
		{"any other text removes", func(t *testing.T) *log { return open(t).result("c", `yes`) }, "c", ""},
		{"a result of another call", func(t *testing.T) *log { return open(t).result("x", answered) }, "c", QuestionOpen},
		{"a second result changes nothing", func(t *testing.T) *log { return continuedOne(t).failed("c", "X") }, "c", QuestionContinued},
		{"removed stays removed", func(t *testing.T) *log { return open(t).failed("c", "X").call("c", oneQuestion) }, "c", ""},
		{"settled stays settled", func(t *testing.T) *log { return open(t).result("c", answered).failed("c", "X").reply("c", "?") }, "c", QuestionSettled},

		{"from code: opens under the sub-call", fromCode, "p:ptc:1", QuestionOpen},
		{"from code in legacy mode", func(t *testing.T) *log { return newLog(t).legacy().start("p", "p:ptc:1", oneQuestion) }, "p:ptc:1", ""},
		{"from code: pending continues", func(t *testing.T) *log { return fromCode(t).dispatch("p", "p:ptc:1", pendingOf(t, "p:ptc:1"), "") }, "p:ptc:1", QuestionContinued},
		{"from code: pending of another removes", func(t *testing.T) *log { return fromCode(t).dispatch("p", "p:ptc:1", pendingOf(t, "c"), "") }, "p:ptc:1", ""},
		{"from code: abort continues", func(t *testing.T) *log { return fromCode(t).dispatch("p", "p:ptc:1", "", CodeAskAborted) }, "p:ptc:1", QuestionContinued},
		{"from code: answers settle", func(t *testing.T) *log { return fromCode(t).dispatch("p", "p:ptc:1", answered, "") }, "p:ptc:1", QuestionSettled},
		{"from code: an error removes", func(t *testing.T) *log { return fromCode(t).dispatch("p", "p:ptc:1", "", "NO_PROVIDER") }, "p:ptc:1", ""},
		{"from code: the parent's result continues", func(t *testing.T) *log { return fromCode(t).failed("p", CodeOutcomeUnknown) }, "p:ptc:1", QuestionContinued},
		{"from code: the parent's success continues too", func(t *testing.T) *log { return fromCode(t).result("p", "done") }, "p:ptc:1", QuestionContinued},
		{"from code: the parent's result leaves the ended", func(t *testing.T) *log {
			return fromCode(t).dispatch("p", "p:ptc:1", answered, "").result("p", "done")
		}, "p:ptc:1", QuestionSettled},
		{"from code: another parent's result", func(t *testing.T) *log { return fromCode(t).result("q", "done") }, "p:ptc:1", QuestionOpen},

		{"an admitted reply settles", func(t *testing.T) *log { return continuedOne(t).reply("c", replyOf(t, "c")) }, "c", QuestionSettled},
		{"a reply that cannot be read settles", func(t *testing.T) *log { return continuedOne(t).reply("c", "gibberish") }, "c", QuestionSettled},
		{"a reply to another call", func(t *testing.T) *log { return continuedOne(t).reply("x", replyOf(t, "c")) }, "c", QuestionContinued},
		{"the same text from a person is no reply", func(t *testing.T) *log {
			return continuedOne(t).add(TypeUserMessage, NewUserMessage("m", replyOf(t, "c"), Source{Kind: SourceUser, CallID: "c"}))
		}, "c", QuestionContinued},
		{"a queued reply changes nothing", func(t *testing.T) *log {
			m := NewUserMessage("m", replyOf(t, "c"), Source{Kind: SourceQuestionReply, CallID: "c"})
			return continuedOne(t).add(TypeInboxSpliced, InboxSpliced{Target: NextStep, Inserted: []UserMessage{m}})
		}, "c", QuestionContinued},
		{"compaction changes nothing", func(t *testing.T) *log {
			l := continuedOne(t).reply("c", replyOf(t, "c"))
			l.events[len(l.events)-1].SurfaceOp = &SurfaceOp{Op: "replace"}
			return l
		}, "c", QuestionContinued},
		{"what a parent session asked is ignored", func(t *testing.T) *log { return continuedOne(t).add(TypeEndSeed, struct{}{}) }, "c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.log(t)
			q := fold(t, l.events)
			got, ok := q.Lookup(tt.id)
			if got.State != tt.want || ok != (tt.want != "") {
				t.Fatalf("%s is %q (known: %v), want %q", tt.id, got.State, ok, tt.want)
			}
			active := slices.ContainsFunc(q.Active(), func(x Tracked) bool { return x.CallID == tt.id })
			if want := tt.want == QuestionOpen || tt.want == QuestionContinued; active != want {
				t.Errorf("active: %v, want %v", active, want)
			}
			if settled := len(q.Settled()) == 1; settled != (tt.want == QuestionSettled) {
				t.Errorf("settled: %v", settled)
			}
		})
	}
}

func TestSettledKeepsItsBatch(t *testing.T) {
	tests := []struct {
		name string
		add  func(*log) *log
		want []Answer
		late bool
	}{
		{"in the foreground", func(l *log) *log { return l.result("c", answered) }, pg, false},
		{"late", func(l *log) *log { return l.failed("c", CodeOutcomeUnknown).reply("c", replyOf(l.t, "c")) }, pg, true},
		{"unreadable", func(l *log) *log { return l.failed("c", CodeOutcomeUnknown).reply("c", "{") }, []Answer{}, true},
		{"of another call", func(l *log) *log { return l.failed("c", CodeOutcomeUnknown).reply("c", replyOf(l.t, "d")) }, []Answer{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := fold(t, tt.add(newLog(t).timed().message().call("c", oneQuestion)).events)
			got, _ := q.Lookup("c")
			if !reflect.DeepEqual(got.Answers, tt.want) || got.Late != tt.late || got.Questions != nil {
				t.Errorf("got %+v", got)
			}
			raw, err := Marshal(got)
			if err != nil || !strings.Contains(string(raw), `"answers":[`) {
				t.Errorf("%s, %v", raw, err)
			}
		})
	}
}

func TestTrackedFacts(t *testing.T) {
	l := newLog(t).timed().message().call("a", oneQuestion).call("b", otherQuestion).message().start("p", "p:ptc:1", oneQuestion)
	l.result("b", `{"answers":[{"id":"name","selected":[],"custom":"x"}]}`).result("a", answered)
	q := fold(t, l.events)
	if !q.Timed() {
		t.Error("not timed")
	}
	want := []Tracked{{CallID: "p:ptc:1", State: QuestionOpen, AskedAt: 1005, Message: 4, Parent: "p"}}
	got := q.Active()
	if len(got) != 1 || len(got[0].Questions) != 1 {
		t.Fatalf("active: %+v", got)
	}
	got[0].Questions = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("active: %+v, want %+v", got, want)
	}
	var order []string
	for _, s := range q.Settled() {
		order = append(order, s.CallID)
	}
	if !slices.Equal(order, []string{"a", "b"}) {
		t.Errorf("settled in the order %v, not in that asked", order)
	}
}

func TestAskedBefore(t *testing.T) {
	same := strings.Replace(oneQuestion, `"id":"db"`, `"id":"db","options":[]`, 1) // the later options count
	tests := []struct {
		name string
		log  func(*testing.T) *log
		want string
	}{
		{"of an earlier message", func(t *testing.T) *log {
			return newLog(t).timed().message().call("a", oneQuestion).result("a", pendingOf(t, "a")).message().call("b", same)
		}, "a"},
		{"the first of several", func(t *testing.T) *log {
			return newLog(t).timed().message().call("a", oneQuestion).call("a2", oneQuestion).message().call("b", oneQuestion)
		}, "a"},
		{"of the same message", func(t *testing.T) *log {
			return newLog(t).timed().message().call("a", oneQuestion).result("a", pendingOf(t, "a")).call("b", oneQuestion)
		}, ""},
		{"settled meanwhile", func(t *testing.T) *log {
			return newLog(t).timed().message().call("a", oneQuestion).result("a", answered).message().call("b", oneQuestion)
		}, ""},
		{"other questions", func(t *testing.T) *log {
			return newLog(t).timed().message().call("a", otherQuestion).message().call("b", oneQuestion)
		}, ""},
		{"the call is unknown", func(t *testing.T) *log { return newLog(t).timed().message().call("a", oneQuestion).message() }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := fold(t, tt.log(t).events)
			if got, ok := q.AskedBefore("b"); got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}

func TestCheckQuestions(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"fine", oneQuestion, ""},
		{"none", `{}`, "at least 1"},
		{"blank id", `{"questions":[{"id":"","question":"?"}]}`, "questions[0].id is blank"},
		{"ids not unique", `{"questions":[{"id":"a","question":"?"},{"id":"a","question":"?"}]}`, `questions[1].id: "a" is used twice`},
		{"blank text", `{"questions":[{"id":"a","question":" \n"}]}`, "questions[0].question is blank"},
		{"labels not unique", `{"questions":[{"id":"a","question":"?","options":[{"label":"x"},{"label":"x"}]}]}`, `questions[0].options[1].label: "x" is used twice`},
		{"blank label", `{"questions":[{"id":"a","question":"?","options":[{"label":""}]}]}`, "options[0].label is blank"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			qs, _, err := ParseQuestions(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			err = CheckQuestions(qs)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckBatch(t *testing.T) {
	qs := []Question{
		{ID: "one", Question: "?", Options: []Option{{Label: "a"}, {Label: "b"}}},
		{ID: "many", Question: "?", Options: []Option{{Label: "c"}, {Label: "d"}}, MultiSelect: true},
	}
	many := Answer{ID: "many"}
	one := Answer{ID: "one"}
	tests := []struct {
		name  string
		batch []Answer
		want  string
		words string // what CheckBatchWithWords says, if not the same
	}{
		{"skipped", []Answer{many, one}, "", ""},
		{"selected", []Answer{{ID: "one", Selected: []string{"a"}}, {ID: "many", Selected: []string{"d", "c"}, Custom: "e"}}, "", ""},
		{"words", []Answer{{ID: "one", Custom: "z"}, many}, "", ""},
		{"missing", []Answer{many}, `question "one" is not answered (to skip it, select nothing); its options are "a", "b"`, ""},
		{"twice", []Answer{one, one, many}, `question "one" is answered twice`, ""},
		{"unknown", []Answer{one, many, {ID: "x"}}, `there is no question "x"; the questions are "one", "many"`, ""},
		{"a label of another question", []Answer{{ID: "one", Selected: []string{"c"}}, many}, `question "one" has no option "c"; its options are "a", "b"`, ""},
		{"two labels", []Answer{{ID: "one", Selected: []string{"a", "b"}}, many}, `question "one" takes one option, not 2`, ""},
		{"a label twice", []Answer{one, {ID: "many", Selected: []string{"c", "c"}}}, `question "many": "c" is selected twice`, ""},
		{"a label and words", []Answer{{ID: "one", Selected: []string{"a"}, Custom: "z"}, many}, `question "one" takes one option or a text of its own`, "none"},
	}
	check := func(t *testing.T, err error, want string) {
		t.Helper()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, CheckBatch(qs, tt.batch), tt.want)
			if tt.words == "none" {
				tt.want = ""
			}
			check(t, CheckBatchWithWords(qs, tt.batch), tt.want)
		})
	}
}

func TestTexts(t *testing.T) {
	if got, _ := BatchText([]Answer{{ID: "a"}, {ID: "b", Selected: []string{"<x>"}, Custom: "ü"}}); got != `{"answers":[{"id":"a","selected":[]},{"id":"b","selected":["<x>"],"custom":"ü"}]}` {
		t.Error(got)
	}
	qs, timeout, err := ParseQuestions(`{"timeout":5,"questions":[{"id":"a","question":"?","detail":"smuggled","options":[],"multi_select":true}]}`)
	if err != nil || timeout == nil || *timeout != 5 || !reflect.DeepEqual(qs, []Question{{ID: "a", Question: "?", MultiSelect: true}}) {
		t.Errorf("%+v %v %v", qs, timeout, err)
	}
	text, err := ReplyText("c", qs, []Answer{{ID: "a"}})
	if want := `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"c","questions":[{"id":"a","question":"?","multi_select":true}],"answers":[{"id":"a","selected":[]}]}`; err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
	id, back, batch, ok := ParseReply(text)
	if id != "c" || !ok || !reflect.DeepEqual(back, qs) || !reflect.DeepEqual(batch, []Answer{{ID: "a", Selected: []string{}}}) {
		t.Errorf("%q %v %v %v", id, back, batch, ok)
	}
}

// What the fold knows after any sequence of events is what a fold from scratch
// knows, and its lists agree with each other.
func TestFoldOfAnyEvents(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newLog(t)
		q := &Questions{}
		for range 40 {
			randomEvent(r, l)
			e := l.events[len(l.events)-1]
			if err := q.Apply(e); err != nil {
				t.Fatal(err)
			}
			checkLists(t, q)
		}
		again := fold(t, l.events)
		if !reflect.DeepEqual(q.Active(), again.Active()) || !reflect.DeepEqual(q.Settled(), again.Settled()) {
			t.Fatalf("seed %d: two folds differ", seed)
		}
	}
}

func randomEvent(r *rand.Rand, l *log) {
	id := fmt.Sprintf("c%d", r.IntN(4))
	sub := fmt.Sprintf("%s:ptc:%d", id, r.IntN(2))
	args := []string{oneQuestion, otherQuestion, "{"}[r.IntN(3)]
	code := []string{CodeAskAborted, CodeOutcomeUnknown, "X"}[r.IntN(3)]
	content := []string{answered, pendingOf(l.t, id), pendingOf(l.t, sub), "x"}[r.IntN(4)]
	switch r.IntN(12) {
	case 0:
		l.legacy()
	case 1, 2:
		l.timed()
	case 3:
		l.message()
	case 4, 5:
		l.call(id, args)
	case 6:
		l.start(id, sub, args)
	case 7:
		l.result(id, content)
	case 8:
		l.failed(id, code)
	case 9:
		l.dispatch(id, sub, content, []string{"", code}[r.IntN(2)])
	case 10:
		l.reply([]string{id, sub}[r.IntN(2)], []string{replyOf(l.t, id), "{"}[r.IntN(2)])
	case 11:
		if r.IntN(8) == 0 {
			l.add(TypeEndSeed, struct{}{})
		} else {
			l.message()
		}
	}
}

func checkLists(t *testing.T, q *Questions) {
	t.Helper()
	open, known := 0, 0
	for _, x := range q.byID {
		if x != nil {
			known++
			if x.State == QuestionOpen {
				open++
			}
		}
	}
	byOrder := func(a, b *tracked) int { return a.order - b.order }
	switch {
	case open != q.open:
		t.Fatalf("%d open, counted %d", open, q.open)
	case known != len(q.active)+len(q.settled):
		t.Fatalf("%d known, %d active, %d settled", known, len(q.active), len(q.settled))
	case !slices.IsSortedFunc(q.active, byOrder), !slices.IsSortedFunc(q.settled, byOrder):
		t.Fatal("not in the order asked")
	}
}

func FuzzQuestions(f *testing.F) {
	f.Add(TypeToolCall, `{"callId":"c","name":"ask_user_question","arguments":"{}"}`)
	f.Add(TypeToolResult, `{"message":{"toolCallId":"c","content":"{\"answers\":[null]}"}}`)
	f.Add(TypeUserMessage, `{"content":[{"type":"text","text":"{\"answers\":[]}"}],"source":{"kind":"user-question-reply","callId":"c"}}`)
	f.Add(TypePTCDispatch, `{"subCallId":"c"}`)
	f.Add(TypeRequestHeader, `{"header":{"tools":[{"name":"ask_user_question","parameters":{"properties":null}}]}}`)
	f.Fuzz(func(t *testing.T, typ, data string) {
		l := newLog(t).timed().message().call("c", oneQuestion).start("p", "p:ptc:1", oneQuestion)
		q := fold(t, l.events)
		for range 2 {
			// An error is fine, a panic is not.
			_ = q.Apply(Event{Seq: 9, Type: typ, Data: json.RawMessage(data)})
			checkLists(t, q)
		}
	})
}
