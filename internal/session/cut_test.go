package session

import (
	"fmt"
	"strings"
	"testing"
)

// sized is a text of about n estimated tokens.
func sized(n int) string { return strings.Repeat("word ", n*10/15) }

func (s *story) replace(from, to int64, text string) *story {
	s.add(TypeUserMessage, NewUserMessage("s", text, Source{Kind: SourcePlugin}))
	s.events[len(s.events)-1].SurfaceOp = &SurfaceOp{Op: OpReplace, FromSeq: from, ToSeq: to}
	return s
}

func (s *story) user(text string, kind string) *story {
	return s.add(TypeUserMessage, NewUserMessage("u", text, Source{Kind: kind}))
}

func (s *story) asks(id string) *story {
	return s.says(Block{Type: BlockToolCall, ID: id, Name: AskTool, Arguments: "{}"})
}

func TestCut(t *testing.T) {
	long := sized(1000)
	for name, c := range map[string]struct {
		s    *story
		tail int64
		want string // from-to, messages, prune; "" = nothing to cut
	}{
		"results that no model has seen stay, whatever size": {
			tell(t).admit("a").says(say(long)).says(callOf("c1"), callOf("c2")).result("c1", long).result("c2", long).user("b", SourceUser), 0, "0-1 2 []",
		},
		"an empty history":               {tell(t), 100, ""},
		"all of it is tail":              {tell(t).admit("a").says(say("x")).admit("b"), 100, ""},
		"the input stays, whatever size": {tell(t).admit("a").says(say("x")).user(long, SourceUser), 0, "0-1 2 []"},
		"input without anything before":  {tell(t).user(long, SourceUser).user(long, SourceUser), 0, ""},
		"what fits stays":                {tell(t).admit("a").says(say(long)).admit("b").says(say("y")).admit("c"), 100, "0-1 2 []"},
		"a call is not split from its results": {
			tell(t).admit("a").says(callOf("c1"), callOf("c2")).result("c1", long).result("c2", "x").says(say("y")), 200, "0-3 4 [2]",
		},
		"a call stays with its results": {
			tell(t).admit("a").says(say(long)).says(callOf("c1"), callOf("c2")).result("c2", "x").result("c1", "y"), 200, "0-1 2 []",
		},
		"an open call": {tell(t).admit("a").says(say(long)).admit("b").says(callOf("c1")), 10, ""},
		"results of questions are not left out": {
			tell(t).admit("a").asks("q").result("q", long).says(callOf("c")).result("c", long).says(say("y")).admit("b"), 10, "0-5 6 [4]",
		},
		"short results are not left out": {tell(t).admit("a").says(callOf("c")).result("c", "x").says(say("y")).admit("b"), 10, "0-3 4 []"},
		"what is older than an earlier summary goes with it": {
			tell(t).admit("a").says(say(long)).admit("b").says(say("y")).replace(0, 1, "sum").says(say("z")).admit("c"), 30, "2-4 3 []",
		},
		"no cut where the input is older than the summary": {
			tell(t).admit("a").says(say(long)).admit("b").replace(0, 1, long), 10, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.s.state()
			cut, ok := st.History.Cut(c.tail, 1<<40)
			got := ""
			if ok {
				got = fmt.Sprintf("%d-%d %d %v", cut.From, cut.To, cut.Messages, cut.Prune)
			}
			if got != c.want {
				t.Fatalf("cut %q, want %q", got, c.want)
			}
			if !ok {
				return
			}
			// The replacement keeps just what the cut keeps.
			msgs, err := st.History.Messages()
			if err != nil {
				t.Fatal(err)
			}
			after := c.s.replace(cut.From, cut.To, "S").state()
			kept, err := after.History.Messages()
			if err != nil {
				t.Fatal(err)
			}
			if len(kept) != len(msgs)-cut.Messages+1 || kept[0].Text != "S" {
				t.Errorf("%d messages became %d", len(msgs), len(kept))
			}
		})
	}
}

// What no model has seen is left out only where it does not fit, and its end first.
func TestCutOfWhatNoModelHasSeen(t *testing.T) {
	long := sized(1000)
	for name, c := range map[string]struct {
		s      *story
		unseen int64
		want   string // messages that are replaced, seqs left out of the rest
	}{
		"all of it fits": {tell(t).admit("a").says(callOf("c1"), callOf("c2")).result("c1", long).result("c2", long), 3000, "1 []"},
		"one of it fits": {tell(t).admit("a").says(callOf("c1"), callOf("c2")).result("c1", long).result("c2", long), 1500, "1 [3]"},
		"none fits":      {tell(t).admit("a").says(callOf("c1"), callOf("c2")).result("c1", long).result("c2", long), 10, "1 [3 2]"},
		"short results and words of a person stay": {
			tell(t).admit("a").says(callOf("c1"), Block{Type: BlockToolCall, ID: "q", Name: AskTool, Arguments: "{}"}).result("c1", "x").result("q", long), 10, "1 []",
		},
		"nothing stands before it": {
			tell(t).says(callOf("c")).result("c", long), 10, "0 [1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.s.state()
			cut, _ := st.History.Cut(0, c.unseen)
			if got := fmt.Sprintf("%d %v", cut.Messages, cut.Unseen); got != c.want {
				t.Errorf("cut %s, want %s", got, c.want)
			}
		})
	}
}

func TestCutKnowsWhetherInstructionsStay(t *testing.T) {
	s := tell(t).user("do", SourceAgentInstructions).says(say(sized(500))).admit("b")
	st := s.state()
	if cut, ok := st.History.Cut(100, 1<<40); !ok || !cut.Instructions {
		t.Errorf("%+v %v: the instructions are in what goes", cut, ok)
	}
	st = s.says(say("x")).user("do that", SourceAgentInstructions).admit("c").state()
	if cut, ok := st.History.Cut(100, 1<<40); !ok || cut.Instructions {
		t.Errorf("%+v %v: newer instructions are in the tail", cut, ok)
	}
}

func TestSizeIsWhatTheProviderCountedAndAnEstimateOfTheRest(t *testing.T) {
	answer := func(u *Usage, blocks ...Block) AssistantMessage {
		return AssistantMessage{Turn: 1, Step: 1, Message: ModelMessage{ID: "m", Role: "assistant", Content: blocks}, Usage: u}
	}
	s := tell(t).admit("a").add(TypeAssistantMessage, answer(&Usage{InputTokens: 5000, CacheReadTokens: 2000, OutputTokens: 300}, say("x"), callOf("c1")))
	if n, ok := s.state().History.Size(); !ok || n < 7300 || n > 7320 {
		t.Errorf("%d %v", n, ok)
	}
	s.result("c1", sized(1000))
	n, ok := s.state().History.Size()
	if !ok || n < 8000 || n > 8600 {
		t.Errorf("%d %v", n, ok)
	}
	if more, ok := s.add(TypeRequestHeader, RequestHeader{Reason: HeaderResume}).state().History.Size(); !ok || more != n {
		t.Errorf("a resume changes the size to %d %v", more, ok)
	}
	if n, ok := s.add(TypeRequestHeader, RequestHeader{Reason: HeaderChange}).state().History.Size(); ok || n > 1500 {
		t.Errorf("after other tools the old count stands: %d %v", n, ok)
	}
	s.add(TypeAssistantMessage, answer(&Usage{InputTokens: 1, CacheReadTokens: 1000, OutputTokens: 5}, say("y")))
	if n, ok := s.state().History.Size(); !ok || n != 1006 {
		t.Errorf("%d %v", n, ok)
	}
	s.add(TypeAssistantMessage, answer(&Usage{OutputTokens: 5}, say("z")))
	if n, ok := s.state().History.Size(); !ok || n <= 1006 {
		t.Errorf("a server that counts nothing is believed: %d %v", n, ok)
	}
	before := s.state().History.Weight()
	st := s.add(TypeCompactionPrune, CompactionPrune{Seqs: []int64{2}}).state()
	if n, ok := st.History.Size(); ok || n >= before || n != st.History.Weight() {
		t.Errorf("after pruning: %d %v, before %d", n, ok, before)
	}
}

func TestACrashInACompactionIsClosed(t *testing.T) {
	begin := func() *story {
		return tell(t).turn(1).step(1, 1).admit("a").says(say("x")).admit("b").add(TypeCompactionStart, CompactionStart{Turn: 1})
	}
	pruned := func(s *story) *story { return s.add(TypeCompactionPrune, CompactionPrune{Seqs: []int64{9}}) }
	summed := func(s *story) *story {
		return s.add(TypeCompactionSummary, CompactionSummary{FromSeq: 2, ToSeq: 3, MessageID: "s"})
	}
	for name, c := range map[string]struct {
		s    *story
		want string // payload of compaction/end; "" = none
		told string
	}{
		"begun":        {begin(), `{"ok":false,"error":{"code":"INTERRUPTED","message":"the program ended before the conversation was summed up"}}`, "u:text of a | a:x | u:text of b"},
		"pruned":       {pruned(begin()), `{"ok":false,"error":{"code":"INTERRUPTED","message":"the program ended before the conversation was summed up"}}`, "u:text of a | a:x | u:text of b"},
		"summed up":    {summed(begin()), `{"ok":false,"error":{"code":"INTERRUPTED","message":"the program ended before the conversation was summed up"}}`, "u:text of a | a:x | u:text of b"},
		"replaced":     {summed(begin()).replace(2, 3, "S"), `{"ok":true}`, "u:S | u:text of b"},
		"ended":        {summed(begin()).replace(2, 3, "S").add(TypeCompactionEnd, CompactionEnd{OK: true}), "", "u:S | u:text of b"},
		"turn is over": {begin().stepEnd(1, 1).end(1, EndError), "", "u:text of a | a:x | u:text of b"},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.s.state()
			closers, err := st.Repair("s1")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i, e := range closers {
				if e.Type == TypeCompactionEnd {
					got = string(e.Data)
					if closers[i+1].Type != TypeStepEnd {
						t.Errorf("behind it stands %s", closers[i+1].Type)
					}
				}
			}
			if got != c.want {
				t.Errorf("closed with %s, want %s", got, c.want)
			}
			if got := brief(t, st); got != c.told {
				t.Errorf("history %s, want %s", got, c.told)
			}
			if again, err := st.Repair("s1"); err != nil || len(again) != 0 {
				t.Errorf("repaired twice: %v %v", again, err)
			}
		})
	}
}

func TestASummaryIsPaidForAndCountsAsARequest(t *testing.T) {
	cost := 0.5
	s := tell(t).turn(1).step(1, 1).
		add(TypeCompactionSummary, CompactionSummary{MessageID: "s", Usage: &Usage{InputTokens: 10, CacheReadTokens: 90, OutputTokens: 5, CostUSD: &cost}}).
		add(TypeCompactionEnd, CompactionEnd{OK: true}).
		add(TypeCompactionEnd, CompactionEnd{Usage: &Usage{InputTokens: 1}})
	in := NewInterval(0)
	for _, e := range s.events {
		if err := in.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if u := in.Result().Usage; u.InputTokens != 11 || u.CacheReadTokens != 90 || u.OutputTokens != 5 || u.CostUSD == nil || *u.CostUSD != cost {
		t.Errorf("%+v", u)
	}
	if n := s.state().Committed; n != 1 {
		t.Errorf("%d requests have committed", n)
	}
}

func TestInstructionsThatWereSent(t *testing.T) {
	told := func(s *story) string { text, _ := s.state().Instructions(); return text }
	queue := func(s *story, id, text string) *story {
		m := NewUserMessage(id, text, Source{Kind: SourceAgentInstructions})
		return s.add(TypeInboxSpliced, s.state().Inbox.Ahead(NextStep, m))
	}
	s := tell(t).queue(NextStep, "r").user("says agent-instructions", SourceUser)
	if _, ok := s.state().Instructions(); ok {
		t.Error("there are none")
	}
	queue(s, "i1", "one")
	queue(s, "i2", "two")
	st := s.state()
	if got := ids(st.Inbox.Queued(NextStep)); got != "i1,i2,r" || told(s) != "two" {
		t.Errorf("queued %s, in force %q", got, told(s))
	}
	if _, ok := st.AdmittedInstructions(); ok {
		t.Error("nothing was admitted")
	}
	s.add(TypeInboxSpliced, InboxSpliced{Target: NextStep, Start: 1, RemovedCount: 1, Inserted: []UserMessage{}, Outcome: OutcomeCanceled})
	if told(s) != "one" {
		t.Errorf("after a discard %q is in force", told(s))
	}
	s.turn(1).claim(NextStep, 2)
	if told(s) != "one" {
		t.Errorf("while claimed: %q", told(s))
	}
	s.add(TypeUserMessage, NewUserMessage("i1", "one", Source{Kind: SourceAgentInstructions}))
	if got, ok := s.state().AdmittedInstructions(); !ok || got != "one" {
		t.Errorf("%q %v", got, ok)
	}
}

func TestInstructionsAloneAskForNoTurn(t *testing.T) {
	s := tell(t).add(TypeInboxSpliced, InboxSpliced{Target: NextStep, Inserted: []UserMessage{NewUserMessage("i", "x", Source{Kind: SourceAgentInstructions})}})
	if s.state().Inbox.Waiting() {
		t.Error("they ask for a turn")
	}
	if !s.queue(NextTurn, "a").state().Inbox.Waiting() {
		t.Error("a task asks for none")
	}
}
