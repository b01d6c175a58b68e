package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// Events of questions.

const portQuestion = `{"questions":[{"id":"port","question":"Which port?","header":"Port","options":[{"label":"8080"},{"label":"9090"}]}],"timeout":1}`

func timedHeader(tb testing.TB) session.Event {
	return event(tb, session.TypeRequestHeader, session.RequestHeader{Reason: session.HeaderInitial, Header: session.HeaderBody{
		Tools: []session.ToolSpec{{Name: session.AskTool, Parameters: []byte(`{"properties":{"questions":{},"timeout":{"type":"number"}}}`)}},
	}})
}

func askCall(tb testing.TB, id string) session.Event {
	return event(tb, session.TypeToolCall, session.ToolCall{Turn: 1, Step: 1, CallID: id, Name: session.AskTool, Arguments: portQuestion})
}

func result(tb testing.TB, id, content string, failed bool) session.Event {
	return event(tb, session.TypeToolResult, session.ToolResult{Turn: 1, Step: 1, Message: session.ToolMessage{ID: "r-" + id, Role: "tool", ToolCallID: id, Content: content, IsError: failed}})
}

func pendingOf(tb testing.TB, id string) session.Event {
	text, err := session.PendingText(id, "go on")
	if err != nil {
		tb.Fatal(err)
	}
	return result(tb, id, text, false)
}

func answers(label string) []session.Answer {
	return []session.Answer{{ID: "port", Selected: []string{label}}}
}

func reply(tb testing.TB, messageID, callID, label string) session.UserMessage {
	questions, _, err := session.ParseQuestions(portQuestion)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := session.ReplyText(callID, questions, answers(label))
	if err != nil {
		tb.Fatal(err)
	}
	return session.NewUserMessage(messageID, text, session.Source{Kind: session.SourceQuestionReply, CallID: callID, Outcome: "answered"})
}

func queue(tb testing.TB, target string, at int, m session.UserMessage) session.Event {
	return event(tb, session.TypeInboxSpliced, session.InboxSpliced{Target: target, Start: at, Inserted: []session.UserMessage{m}})
}

// asked is a turn in which each call asked for a port and went on without an answer.
func asked(tb testing.TB, task string, ids ...string) []session.Event {
	events := talk(tb, task, 0)
	events = append(events[:5:5], append([]session.Event{timedHeader(tb)}, events[5:]...)...)
	for i, id := range ids {
		at := 6 + 2*i
		events = append(events[:at:at], append([]session.Event{askCall(tb, id), pendingOf(tb, id)}, events[at:]...)...)
	}
	return events
}

// author writes a session as the agent would, with chance as its model, its
// user and its crashes.
type author struct {
	tb     testing.TB
	r      *rand.Rand
	events []session.Event
	state  session.State
	ids    int
	turn   int
}

func (a *author) put(typ string, data any) {
	e := event(a.tb, typ, data)
	e.Seq = int64(len(a.events))
	if err := a.state.Apply(e); err != nil {
		a.tb.Fatalf("%s: %v", typ, err)
	}
	a.events = append(a.events, e)
}

func (a *author) id(what string) string { a.ids++; return fmt.Sprintf("%s_%d", what, a.ids) }

func (a *author) write(turns int) {
	timed := a.r.IntN(5) > 0
	for range turns {
		a.user()
		if a.turn == 0 || a.r.IntN(4) == 0 { // a run begins
			a.put(session.TypeSettings, session.Settings{})
		}
		a.turn++
		a.put(session.TypeTurnStart, session.TurnStart{Turn: a.turn})
		for step := 1; step <= 1+a.r.IntN(3); step++ {
			a.claim(step)
			if a.turn == 1 && step == 1 || a.r.IntN(8) == 0 {
				parameters := `{"properties":{"questions":{},"timeout":{}}}`
				if !timed {
					parameters = `{"properties":{"questions":{}}}`
				}
				a.put(session.TypeRequestHeader, session.RequestHeader{Header: session.HeaderBody{Tools: []session.ToolSpec{{Name: session.AskTool, Parameters: []byte(parameters)}}}})
				if a.r.IntN(4) == 0 {
					timed = !timed
				}
			}
			a.step(step)
			a.user()
			if a.r.IntN(6) == 0 { // an adaptation
				a.put(session.TypeSettings, session.Settings{})
			}
		}
		a.put(session.TypeTurnEnd, session.TurnEnd{Turn: a.turn, Reason: session.Reason{Kind: session.EndCompleted}})
		if a.r.IntN(20) == 0 {
			a.put(session.TypeEndSeed, struct{}{})
		}
	}
}

// user queues a message, answers late, or takes an answer back.
func (a *author) user() {
	if a.r.IntN(3) == 0 {
		m := session.NewUserMessage(a.id("u"), "speaking of "+session.AskTool+" and "+session.SourceQuestionReply, session.Source{Kind: session.SourceUser})
		a.put(session.TypeInboxSpliced, a.state.Inbox.Insert(session.NextTurn, m))
	}
	for _, q := range a.state.Questions.Active() {
		m, queued, found := a.state.Inbox.Reply(q.CallID)
		switch {
		case q.State == session.QuestionContinued && !found && a.r.IntN(3) == 0:
			a.put(session.TypeInboxSpliced, a.state.Inbox.Insert(session.NextStep, reply(a.tb, a.id("reply"), q.CallID, "9090")))
		case queued && a.r.IntN(4) == 0:
			if s, ok := a.state.Inbox.Discard(m.ID); ok {
				a.put(session.TypeInboxSpliced, s)
			}
		}
	}
}

func (a *author) claim(step int) {
	splices, msgs := a.state.Inbox.Claim(step == 1)
	for _, s := range splices {
		a.put(session.TypeInboxSpliced, s)
	}
	a.put(session.TypeStepStart, session.StepMark{Turn: a.turn, Step: step})
	if a.r.IntN(6) == 0 {
		return // the step dies before it admits anything
	}
	for _, m := range msgs {
		a.put(session.TypeUserMessage, m)
	}
}

func (a *author) step(step int) {
	var content []session.Block
	for range a.r.IntN(4) {
		name, args := session.AskTool, portQuestion
		switch a.r.IntN(5) {
		case 0:
			name, args = "run_code", `{"code":"await tools.ask_user_question()"}`
		case 1:
			args = `{"questions":[]}`
		}
		content = append(content, session.Block{Type: session.BlockToolCall, ID: a.id("call"), Name: name, Arguments: args})
	}
	a.put(session.TypeAssistantMessage, session.AssistantMessage{Turn: a.turn, Step: step, Message: session.ModelMessage{ID: a.id("m"), Role: "assistant", Content: content}})
	for _, c := range content {
		a.put(session.TypeToolCall, session.ToolCall{Turn: a.turn, Step: step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
		sub := session.PTCStart{RootCallID: c.ID, ParentCallID: c.ID, SubCallID: c.ID + ":ptc:1", Name: session.AskTool, Arguments: portQuestion}
		if c.Name == "run_code" {
			a.put(session.TypePTCDispatchStart, sub)
		}
	}
	for _, i := range a.r.Perm(len(content)) {
		c := content[i]
		if c.Name == "run_code" && a.r.IntN(3) > 0 {
			sub := session.PTCStart{RootCallID: c.ID, ParentCallID: c.ID, SubCallID: c.ID + ":ptc:1", Name: session.AskTool, Arguments: portQuestion}
			text, failed := a.outcome(sub.SubCallID)
			a.put(session.TypePTCDispatch, session.PTC{PTCStart: sub, Content: text, IsError: failed})
		}
		text, failed := a.outcome(c.ID)
		a.put(session.TypeToolResult, session.ToolResult{Turn: a.turn, Step: step, Message: session.ToolMessage{ID: a.id("r"), Role: "tool", ToolCallID: c.ID, Content: text, IsError: failed}})
	}
	a.put(session.TypeStepEnd, session.StepMark{Turn: a.turn, Step: step})
}

func (a *author) outcome(id string) (text string, failed bool) {
	var err error
	switch a.r.IntN(6) {
	case 0:
		text, err = session.BatchText(answers("8080"))
	case 1:
		return session.CodeAskAborted + ": cancelled", true
	case 2:
		return "NO_PROVIDER: nobody", true
	case 3:
		text, err = session.PendingText("call_of_another", "asked already")
	default:
		text, err = session.PendingText(id, "go on")
	}
	if err != nil {
		a.tb.Fatal(err)
	}
	return text, false
}

// The fold by the bytes of lines must say what the whole fold says, and without
// an owner what it says after repair, wherever a log ends.
func TestQuestionsByPrefixAreThoseOfTheWholeFold(t *testing.T) {
	b := newBox(t)
	paths := []string{
		b.create(t, session.Header{}, asked(t, "x")),
		b.create(t, session.Header{Origin: originSubagent, ParentSession: "p"}, asked(t, "x")),
	}
	open, queued, settled := 0, 0, 0
	for seed := range uint64(150) {
		path := paths[seed%2]
		header := strings.SplitAfterN(readFile(t, path), "\n", 2)[0]
		h, err := session.ParseHeader([]byte(header))
		if err != nil {
			t.Fatal(err)
		}
		a := &author{tb: t, r: rand.New(rand.NewPCG(seed, 1))}
		a.state.Of(h)
		a.write(1 + int(seed%5))
		for _, n := range []int{len(a.events), a.r.IntN(len(a.events) + 1), a.r.IntN(len(a.events) + 1)} {
			lines := []byte(header)
			var st session.State
			st.Of(h)
			for _, e := range a.events[:n] {
				lines = e.AppendLine(lines)
				if err := st.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(path, lines, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, live := range []bool{true, false} {
				if !live {
					if _, err := st.Repair(fileID(path)); err != nil {
						t.Fatal(err)
					}
				}
				got, _, err := readQuestions(context.Background(), redact.Key{}, path, live)
				if want := listQuestions(&st); err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, %d events, live %v: %v\ngot  %+v\nwant %+v", seed, n, live, err, got, want)
				}
				settled += len(got.Settled)
				for _, q := range got.Active {
					if q.State == string(session.QuestionOpen) {
						open++
					}
					if q.Queued {
						queued++
					}
				}
			}
		}
	}
	if open < 50 || queued < 50 || settled < 50 {
		t.Errorf("the logs test too little: %d open, %d queued, %d settled", open, queued, settled)
	}
}

func TestASubagentsQuestionsAreNone(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{Origin: originSubagent, ParentSession: "p"}, asked(t, "x", "call_1"))
	got, _, err := readQuestions(context.Background(), redact.Key{}, path, true)
	if err != nil || len(got.Active) != 0 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestDamageThatAFoldFindsHasAPlace(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{}, append(asked(t, "x", "call_1"), event(t, session.TypeToolCall, map[string]any{"callId": 7, "name": session.AskTool})))
	_, _, err := readQuestions(context.Background(), redact.Key{}, path, true)
	var at *logstore.DamageError
	if !errors.As(err, &at) || at.Line != 12 || at.Path != path {
		t.Errorf("%v", err)
	}
}

func TestReadingQuestionsEndsWithTheContext(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{}, asked(t, "x", "call_1"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := readQuestions(ctx, redact.Key{}, path, true); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
