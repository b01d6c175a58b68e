package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// story builds a log by hand: each call is the next event.
type story struct {
	t      *testing.T
	events []Event
}

func tell(t *testing.T) *story { return &story{t: t} }

func (s *story) add(typ string, data any) *story {
	s.t.Helper()
	e, err := NewEvent(typ, int64(1000+len(s.events)), data)
	if err != nil {
		s.t.Fatal(err)
	}
	e.Seq = int64(len(s.events))
	s.events = append(s.events, e)
	return s
}

func (s *story) queue(target, id string) *story {
	return s.add(TypeInboxSpliced, InboxSpliced{Target: target, Start: s.state().Inbox.Len(target), Inserted: []UserMessage{text(id)}})
}

func (s *story) claim(target string, n int) *story {
	return s.add(TypeInboxSpliced, InboxSpliced{Target: target, RemovedCount: n, Inserted: []UserMessage{}})
}

func (s *story) turn(n int) *story { return s.add(TypeTurnStart, TurnStart{Turn: n}) }
func (s *story) step(turn, n int) *story {
	return s.add(TypeStepStart, StepMark{Turn: turn, Step: n})
}

func (s *story) stepEnd(turn, n int) *story { return s.add(TypeStepEnd, StepMark{Turn: turn, Step: n}) }
func (s *story) admit(id string) *story     { return s.add(TypeUserMessage, text(id)) }
func (s *story) end(n int, kind string) *story {
	return s.add(TypeTurnEnd, TurnEnd{Turn: n, Reason: Reason{Kind: kind}})
}

func (s *story) says(blocks ...Block) *story {
	return s.add(TypeAssistantMessage, AssistantMessage{Turn: 1, Step: 1, Message: ModelMessage{ID: "m", Role: "assistant", Content: blocks}})
}

func (s *story) starts(id string) *story {
	return s.add(TypeToolCall, ToolCall{Turn: 1, Step: 1, CallID: id, Name: "bash", Arguments: "{}"})
}

func (s *story) result(id, content string) *story {
	return s.add(TypeToolResult, ToolResult{Turn: 1, Step: 1, Message: ToolMessage{ID: "r" + id, Role: "tool", ToolCallID: id, Content: content}})
}

func (s *story) state() *State {
	s.t.Helper()
	var st State
	for _, e := range s.events {
		if err := st.Apply(e); err != nil {
			s.t.Fatalf("event %d: %v", e.Seq, err)
		}
	}
	return &st
}

func text(id string) UserMessage { return NewUserMessage(id, "text of "+id, Source{Kind: SourceUser}) }
func say(t string) Block         { return Block{Type: BlockText, Text: t} }
func think(t string) Block       { return Block{Type: BlockReasoning, Text: t} }
func callOf(id string) Block {
	return Block{Type: BlockToolCall, ID: id, Name: "bash", Arguments: "{}"}
}

// brief writes a history as one word a message.
func brief(t *testing.T, st *State) string {
	t.Helper()
	msgs, err := st.History.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range msgs {
		w := string(m.Role[0]) + ":" + m.Text
		for _, c := range m.Calls {
			w += "+" + c.ID
		}
		if m.CallID != "" {
			w = "t:" + m.CallID + "=" + m.Text
		}
		out = append(out, w)
	}
	return strings.Join(out, " | ")
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		s    *story
		want string
	}{
		"results take the order of their calls": {
			tell(t).turn(1).step(1, 1).admit("a").says(say("x"), callOf("c1"), callOf("c2")).starts("c1").starts("c2").result("c2", "two").result("c1", "one"),
			"u:text of a | a:x+c1+c2 | t:c1=one | t:c2=two",
		},
		"a message cut in its reasoning is left out": {
			tell(t).turn(1).step(1, 1).admit("a").says(think("hm")), "u:text of a",
		},
		"a result that answers nothing open is no message": {
			tell(t).turn(1).step(1, 1).admit("a").says(say("x")).result("c9", "?"), "u:text of a | a:x",
		},
		"a pruned result says so": {
			tell(t).turn(1).step(1, 1).says(callOf("c1")).result("c1", "long").add(TypeCompactionPrune, CompactionPrune{Seqs: []int64{3}}),
			"a:+c1 | t:c1=" + Pruned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := brief(t, c.s.state()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestHistoryReplaceKeepsWhatStandsAround(t *testing.T) {
	s := tell(t).turn(1).step(1, 1).admit("a").says(say("x"), callOf("c1")).result("c1", "one").says(say("y")).admit("b")
	e, err := NewEvent(TypeUserMessage, 1, NewUserMessage("s", "summary", Source{Kind: SourcePlugin}))
	if err != nil {
		t.Fatal(err)
	}
	e.Seq, e.SurfaceOp = int64(len(s.events)), &SurfaceOp{Op: "replace", FromSeq: 2, ToSeq: 4}
	s.events = append(s.events, e)
	if got, want := brief(t, s.state()), "u:summary | a:y | u:text of b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHistoryReplaceWithACallOpen(t *testing.T) {
	s := tell(t).turn(1).step(1, 1).admit("a").says(callOf("c1"))
	e, err := NewEvent(TypeUserMessage, 1, NewUserMessage("s", "summary", Source{Kind: SourcePlugin}))
	if err != nil {
		t.Fatal(err)
	}
	e.Seq, e.SurfaceOp = int64(len(s.events)), &SurfaceOp{Op: "replace", FromSeq: 2, ToSeq: 2}
	s.events = append(s.events, e)
	s.result("c1", "one")
	if got, want := brief(t, s.state()), "u:summary | a:+c1 | t:c1=one"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHistoryWithAnUnansweredCallIsAnError(t *testing.T) {
	st := tell(t).turn(1).step(1, 1).says(callOf("c1")).state()
	if _, err := st.History.Messages(); err == nil || !strings.Contains(err.Error(), "c1") {
		t.Fatalf("error %v does not name the call", err)
	}
}

func ids(msgs []UserMessage) string {
	var out []string
	for _, m := range msgs {
		out = append(out, m.ID)
	}
	return strings.Join(out, ",")
}

func TestInbox(t *testing.T) {
	for name, c := range map[string]struct {
		s              *story
		turnQ, stepQ   string
		crashTurn      string // next-turn after repair
		crashStep      string
		repairedEvents int
	}{
		"queued": {s: tell(t).queue(NextTurn, "a").queue(NextTurn, "b").queue(NextStep, "s"), turnQ: "a,b", stepQ: "s", crashTurn: "a,b", crashStep: "s"},
		"a claim without its admission is put back at the head": {
			s:     tell(t).queue(NextTurn, "a").queue(NextTurn, "b").queue(NextStep, "s").turn(1).claim(NextStep, 1).claim(NextTurn, 1),
			turnQ: "b", crashTurn: "a,b", crashStep: "s", repairedEvents: 1,
		},
		"an admitted one is gone for good": {
			s:         tell(t).queue(NextTurn, "a").queue(NextStep, "s").turn(1).claim(NextStep, 1).claim(NextTurn, 1).step(1, 1).admit("s"),
			crashTurn: "a", repairedEvents: 2,
		},
		"a discard does not come back": {
			s: tell(t).queue(NextTurn, "a").turn(1).add(TypeInboxSpliced, InboxSpliced{Target: NextTurn, RemovedCount: 1, Inserted: []UserMessage{}, Outcome: OutcomeCanceled}),
			// the turn is open, repair closes it
			repairedEvents: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.s.state()
			if got := ids(st.Inbox.Queued(NextTurn)); got != c.turnQ {
				t.Errorf("next-turn %q, want %q", got, c.turnQ)
			}
			if got := ids(st.Inbox.Queued(NextStep)); got != c.stepQ {
				t.Errorf("next-step %q, want %q", got, c.stepQ)
			}
			closers, err := st.Repair("s1")
			if err != nil || len(closers) != c.repairedEvents {
				t.Fatalf("repair: %d events, %v; want %d", len(closers), err, c.repairedEvents)
			}
			if got := ids(st.Inbox.Queued(NextTurn)); got != c.crashTurn {
				t.Errorf("after repair next-turn %q, want %q", got, c.crashTurn)
			}
			if got := ids(st.Inbox.Queued(NextStep)); got != c.crashStep {
				t.Errorf("after repair next-step %q, want %q", got, c.crashStep)
			}
		})
	}
}

func TestInboxRefusesASpliceThatDoesNotFit(t *testing.T) {
	for _, s := range []InboxSpliced{
		{Target: "nowhere"},
		{Target: NextTurn, Start: 1},
		{Target: NextTurn, Start: -1},
		{Target: NextTurn, RemovedCount: 1},
		{Target: NextTurn, RemovedCount: -1},
	} {
		e, err := NewEvent(TypeInboxSpliced, 1, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Inbox{}).Apply(e); !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestClaimTakesAllSteersAndOneFollowup(t *testing.T) {
	st := tell(t).queue(NextTurn, "a").queue(NextTurn, "b").queue(NextStep, "s").queue(NextStep, "r").state()
	splices, msgs := st.Inbox.Claim(true)
	if ids(msgs) != "s,r,a" || len(splices) != 2 {
		t.Errorf("first step: %s in %d splices", ids(msgs), len(splices))
	}
	splices, msgs = st.Inbox.Claim(false)
	if ids(msgs) != "s,r" || len(splices) != 1 {
		t.Errorf("later step: %s in %d splices", ids(msgs), len(splices))
	}
}

func TestReplyIsReservedFromQueueToAdmission(t *testing.T) {
	reply := NewUserMessage("q", "{}", Source{Kind: SourceQuestionReply, CallID: "c1", Outcome: "answered"})
	s := tell(t).add(TypeInboxSpliced, InboxSpliced{Target: NextStep, Inserted: []UserMessage{reply}})
	check := func(wantQueued, wantFound bool) {
		t.Helper()
		in := s.state().Inbox
		_, queued, found := in.Reply("c1")
		if queued != wantQueued || found != wantFound {
			t.Errorf("queued %v found %v, want %v %v", queued, found, wantQueued, wantFound)
		}
	}
	check(true, true)
	in := s.state().Inbox
	if splice, ok := in.Discard("q"); !ok || splice.Target != NextStep || splice.Outcome != OutcomeCanceled {
		t.Errorf("discard %+v %v", splice, ok)
	}
	if _, ok := in.Discard("other"); ok {
		t.Error("discards what is not there")
	}
	s.turn(1).claim(NextStep, 1)
	check(false, true)
	s.step(1, 1).add(TypeUserMessage, reply)
	check(false, false)
}

func TestClosers(t *testing.T) {
	for name, c := range map[string]struct {
		s    *story
		want []string
	}{
		"nothing open":               {tell(t).turn(1).end(1, EndCompleted), nil},
		"a turn without a step":      {tell(t).turn(1), []string{TypeTurnEnd}},
		"a step":                     {tell(t).turn(1).step(1, 1), []string{TypeStepEnd, TypeTurnEnd}},
		"between steps":              {tell(t).turn(1).step(1, 1).stepEnd(1, 1), []string{TypeTurnEnd}},
		"a call that was started":    {tell(t).turn(1).step(1, 1).says(callOf("c1")).starts("c1"), []string{"c1 TOOL_OUTCOME_UNKNOWN", TypeStepEnd, TypeTurnEnd}},
		"started, answered, waiting": {tell(t).turn(1).step(1, 1).says(callOf("c1"), callOf("c2"), callOf("c3")).starts("c1").starts("c2").result("c2", "x"), []string{"c1 TOOL_OUTCOME_UNKNOWN", "c3 TOOL_NOT_STARTED", TypeStepEnd, TypeTurnEnd}},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.s.state()
			closers, err := st.Turns.Closers("s1", &st.Questions)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range closers {
				if e.Type != TypeToolResult {
					got = append(got, e.Type)
					continue
				}
				var r ToolResult
				if err := json.Unmarshal(e.Data, &r); err != nil {
					t.Fatal(err)
				}
				if !r.Message.IsError || !strings.HasPrefix(r.Message.Content, r.Error.Code+": ") {
					t.Errorf("result %+v", r)
				}
				got = append(got, r.Message.ToolCallID+" "+r.Error.Code)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRepairCutAnywhereLeadsToTheSameLog stops a repair after each of its
// events: the next repair must write exactly the rest.
func TestRepairCutAnywhereLeadsToTheSameLog(t *testing.T) {
	crashed := tell(t).queue(NextTurn, "a").turn(1).claim(NextTurn, 1).step(1, 1).says(callOf("c1"), callOf("c2")).starts("c1")
	whole, err := crashed.state().Repair("s1")
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		s := &story{t: t, events: append(append([]Event{}, crashed.events...), whole[:cut]...)}
		rest, err := s.state().Repair("s1")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rest, whole[cut:]) {
			t.Errorf("cut after %d: got %s\nwant %s", cut, lines(rest), lines(whole[cut:]))
		}
	}
}

func lines(events []Event) string {
	var b []byte
	for _, e := range events {
		b = e.AppendLine(b)
	}
	return string(b)
}

// TestRepairPromisesAnAnswerOnlyWhereOneCanCome: to what is not tracked nobody can answer.
func TestRepairPromisesAnAnswerOnlyWhereOneCanCome(t *testing.T) {
	child := Header{Origin: OriginSubagent, ParentSession: "p"}
	for _, c := range []struct {
		name     string
		of       Header
		schema   string // properties of the tool's schema
		args     string
		promised bool
	}{
		{"timed", Header{}, `"timeout":{}`, oneQuestion, true},
		{"legacy", Header{}, `"x":{}`, oneQuestion, false},
		{"of a sub-agent", child, `"timeout":{}`, oneQuestion, false},
		{"one that would have been refused", Header{}, `"timeout":{}`, `{"questions":[]}`, false},
		{"one that cannot be read", Header{}, `"timeout":{}`, `{"questions":1}`, false},
	} {
		for _, way := range []string{"asked by the model", "asked from code"} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				s := tell(t).turn(1).step(1, 1).add(TypeRequestHeader, RequestHeader{Header: HeaderBody{Tools: []ToolSpec{
					{Name: AskTool, Parameters: json.RawMessage(`{"properties":{` + c.schema + `}}`)},
				}}})
				name := AskTool
				if way == "asked from code" {
					name = "run_code"
				}
				s.says(Block{Type: BlockToolCall, ID: "c1", Name: name, Arguments: c.args})
				s.add(TypeToolCall, ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: name, Arguments: c.args})
				if name != AskTool {
					s.subStarts("c1:ptc:1", AskTool, c.args)
				}
				var st State
				st.Of(c.of)
				for _, e := range s.events {
					if err := st.Apply(e); err != nil {
						t.Fatal(err)
					}
				}
				live := st.CodeQuestions("c1")
				closers, err := st.Repair("s1")
				if err != nil {
					t.Fatal(err)
				}
				var r ToolResult
				if err := json.Unmarshal(closers[0].Data, &r); err != nil {
					t.Fatal(err)
				}
				if name != AskTool && (live == "" || !strings.HasSuffix(r.Message.Content, live)) {
					t.Errorf("%q does not end in %q", r.Message.Content, live)
				}
				promised := strings.Contains(strings.ToLower(r.Message.Content), "stays answerable")
				gone := strings.Contains(r.Message.Content, goneWithCall)
				if active := len(st.Questions.Active()) == 1; promised != c.promised || gone == promised || active != promised {
					t.Errorf("promised %v, gone %v, answerable %v: %s", promised, gone, active, r.Message.Content)
				}
			})
		}
	}
}

func TestInterval(t *testing.T) {
	usd := 0.5
	s := tell(t).queue(NextTurn, "old").turn(1).step(1, 1).says(say("before"))
	from := int64(len(s.events))
	s.queue(NextTurn, "a").turn(2).step(2, 1)
	s.add(TypeAssistantMessage, AssistantMessage{Message: ModelMessage{Content: []Block{say("first"), callOf("c")}}, Usage: &Usage{InputTokens: 3, CacheReadTokens: 2, OutputTokens: 1, CostUSD: &usd}})
	s.add(TypeApprovalDecided, ApprovalDecided{CallID: "c", Decision: DecisionDenied})
	s.add(TypeApprovalDecided, ApprovalDecided{CallID: "c", Decision: DecisionOnce})
	s.step(2, 2)
	s.add(TypeAssistantMessage, AssistantMessage{Message: ModelMessage{Content: []Block{callOf("c3")}}, Usage: &Usage{InputTokens: 1, CostUSD: &usd}})
	s.add(TypeTurnEnd, TurnEnd{Turn: 2, Reason: Reason{Kind: EndMaxSteps}})
	in := NewInterval(from)
	for _, e := range s.events {
		if err := in.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	r := in.Result()
	if r.FinalResponse != "first" || *r.FinishReason != EndMaxSteps || r.Steps != 2 || r.Denied != 1 || in.Steps() != 2 || in.End().Kind != EndMaxSteps {
		t.Errorf("%+v", r)
	}
	if r.Usage.InputTokens != 4 || r.Usage.CacheReadTokens != 2 || *r.Usage.CostUSD != 1 {
		t.Errorf("usage %+v", r.Usage)
	}
	if r.Events != (Range{From: from, To: int64(len(s.events) - 1)}) {
		t.Errorf("events %+v", r.Events)
	}
}

func TestIntervalWithoutATurnHasNoFinish(t *testing.T) {
	in := NewInterval(0)
	for _, e := range tell(t).queue(NextTurn, "a").events {
		if err := in.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Marshal(in.Result())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"finishReason":null`) || !strings.Contains(string(b), `"questions":[]`) || !strings.Contains(string(b), `"messageId":null`) {
		t.Errorf("%s", b)
	}
}

func TestAMalformedTurnEndIsAnError(t *testing.T) {
	for _, data := range []string{`{"turn":1}`, `{"turn":1,"reason":{}}`, `{"turn":1,"reason":7}`} {
		if err := NewInterval(0).Apply(Event{Type: TypeTurnEnd, Data: json.RawMessage(data)}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestStateRefuses(t *testing.T) {
	ok := json.RawMessage(`{}`)
	for name, c := range map[string]struct {
		e    Event
		want error
	}{
		"a gap":                      {Event{Seq: 1, Type: TypeTurnStart, Data: ok}, ErrDamaged},
		"an unknown type":            {Event{Type: "future/thing", Data: ok}, ErrTooNew},
		"an unknown, ignorable type": {Event{Type: "future/thing", Data: ok, Ignorable: true}, nil},
	} {
		if err := (&State{}).Apply(c.e); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for typ := range known {
		err := (&State{}).Apply(Event{Type: typ, Data: json.RawMessage(`{"turn":"x","message":7,"id":7,"target":7,"header":[],"seqs":7,"provider":7,"mode":7,"decision":7}`)})
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestStateKeepsTheLastOfEach(t *testing.T) {
	s := tell(t).
		add(TypeSettings, Settings{Mode: "legacy"}).add(TypeSettings, Settings{Mode: "timed", Timeout: 5}).
		add(TypeRequestHeader, RequestHeader{Header: HeaderBody{System: "be good"}, Reason: HeaderInitial}).
		add(TypeRequestContext, RequestContext{Provider: "p", Model: "m"}).
		turn(1).step(1, 1).says(callOf("c1"))
	s.add(TypeToolResult, ToolResult{Message: ToolMessage{ToolCallID: "c1"}, Meta: &ToolMeta{Observed: []Observed{{Path: "/a", Hash: "h"}}}})
	s.add(TypeAssistantMessage, AssistantMessage{Message: ModelMessage{Content: []Block{say("cut")}}, Interrupted: true})
	st := s.state()
	if st.Settings.Mode != "timed" || st.LastContext.Model != "m" || st.Committed != 1 || !st.UsedCallID("c1") || st.UsedCallID("c2") || len(st.Observed) != 1 {
		t.Errorf("%+v", st)
	}
	body, ok, err := st.HeaderBody()
	if err != nil || !ok || body.System != "be good" {
		t.Errorf("%+v %v %v", body, ok, err)
	}
	if _, ok, err := (&State{}).HeaderBody(); ok || err != nil {
		t.Errorf("header before the first: %v %v", ok, err)
	}
}

func TestEnvelope(t *testing.T) {
	e := Event{Seq: 7, Type: "a/b", Time: 12, Data: json.RawMessage(`{"x":"<é>"}`), SurfaceOp: &SurfaceOp{Op: "replace", FromSeq: 1, ToSeq: 3}, Ignorable: true}
	line := e.AppendLine(nil)
	if want := `{"seq":7,"type":"a/b","time":12,"data":{"x":"<é>"},"surfaceOp":{"op":"replace","fromSeq":1,"toSeq":3},"ignorable":true}` + "\n"; string(line) != want {
		t.Errorf("got %s", line)
	}
	back, err := ParseEvent(line[:len(line)-1])
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%+v %v", back, err)
	}
	for _, bad := range []string{``, `{`, `[]`, `{"seq":0,"type":"x"}`, `{"seq":0,"type":"x","data":[]}`, `{"seq":0,"data":{}}`} {
		if _, err := ParseEvent([]byte(bad)); err == nil {
			t.Errorf("%q is taken for an event", bad)
		}
	}
	if _, err := NewEvent("x", 1, func() {}); err == nil {
		t.Error("encodes a function")
	}
}

func TestParseHeader(t *testing.T) {
	for line, want := range map[string]error{
		`{"type":"session","version":1,"id":"x","createdAt":1,"cwd":"/","delegationDepth":0}`: nil,
		`{"type":"session","version":2,"id":7}`:                                               ErrTooNew,
		`{"version":2}`:                                                                       ErrTooNew,
		`{"type":[],"version":2.0}`:                                                           ErrTooNew,
		`{"type":"session","version":1.5,"id":"x"}`:                                           ErrTooNew,
		`{"type":"session","version":1e3,"id":"x"}`:                                           ErrTooNew,
		`{"type":"session","version":1e999,"id":"x"}`:                                         ErrTooNew,
		`{"type":"session","version":99999999999999999999,"id":"x"}`:                          ErrTooNew,
		`{"type":"session","version":"2","id":"x"}`:                                           ErrDamaged,
		`{"type":"session","version":null,"id":"x"}`:                                          ErrDamaged,
		`{"type":"session","version":-2,"id":"x"}`:                                            ErrDamaged,
		`{"version":2`:                            ErrDamaged,
		`[2]`:                                     ErrDamaged,
		`{"type":"session","version":1}`:          ErrDamaged,
		`{"type":"other","version":1,"id":"x"}`:   ErrDamaged,
		`{"type":"session","version":1,"id":[]}`:  ErrDamaged,
		`{"type":"session","version":0,"id":"x"}`: ErrDamaged,
		`nonsense`:                                ErrDamaged,
	} {
		if _, err := ParseHeader([]byte(line)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", line, err, want)
		}
	}
	b, err := Marshal(Header{Type: "session", Version: 1, ID: "i", CreatedAt: 5, Cwd: "/w"})
	if want := `{"type":"session","version":1,"id":"i","createdAt":5,"cwd":"/w","delegationDepth":0}`; err != nil || string(b) != want {
		t.Errorf("%s %v", b, err)
	}
}

func TestBlocks(t *testing.T) {
	in := []Block{think("a"), say("b"), {Type: BlockToolCall, ID: "c", Name: "n", Arguments: ""}}
	b, err := Marshal(in)
	if want := `[{"type":"reasoning","text":"a"},{"type":"text","text":"b"},{"type":"tool-call","id":"c","name":"n","arguments":""}]`; err != nil || string(b) != want {
		t.Errorf("%s %v", b, err)
	}
	var back []Block
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("%+v %v", back, err)
	}
	if err := json.Unmarshal([]byte(`[{"type":"hologram"}]`), &back); err == nil {
		t.Error("takes an unknown block")
	}
	if err := json.Unmarshal([]byte(`[{"type":7}]`), &back); err == nil {
		t.Error("takes a block of the wrong shape")
	}
}

// FuzzState feeds the folds arbitrary payloads: they may refuse, never panic,
// and what repair makes of an accepted log is a closed turn.
func FuzzState(f *testing.F) {
	f.Add([]byte(`[["turn/start",{"turn":1}],["agent/inbox/spliced",{"target":"next-turn","start":0,"inserted":[{"id":"a"}]}],["tool/result",{"message":{"toolCallId":"x"}}]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var pairs [][2]json.RawMessage
		if json.Unmarshal(data, &pairs) != nil {
			return
		}
		var st State
		for _, p := range pairs {
			var typ string
			if json.Unmarshal(p[0], &typ) != nil {
				return
			}
			if st.Apply(Event{Seq: st.Next, Type: typ, Data: p[1]}) != nil {
				return
			}
		}
		if _, err := st.Repair("s"); err != nil {
			t.Fatalf("repair: %v", err)
		}
		if st.Turns.Open() || st.Turns.StepOpen() {
			t.Fatal(fmt.Sprint("a turn is open after repair: ", st.Turns))
		}
	})
}
