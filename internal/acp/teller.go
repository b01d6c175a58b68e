package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// teller turns what the log says into updates. Text is told as it streams, and
// what a committed message has beyond that when it is committed. It is one
// goroutine's.
type teller struct {
	dir  string // where tools work
	send func(sdk.SessionUpdate) error
	mute bool // the client knows it already

	turn     int
	calls    map[string]bool // those that were announced and have no result
	streamed map[string]*strings.Builder
	window   int
	cost     float64
	priced   bool
}

func newTeller(dir string, send func(sdk.SessionUpdate) error) *teller {
	return &teller{dir: dir, send: send, calls: map[string]bool{}, streamed: map[string]*strings.Builder{}}
}

func (t *teller) tell(updates ...sdk.SessionUpdate) error {
	if t.mute {
		return nil
	}
	for _, u := range updates {
		if err := t.send(u); err != nil {
			return err
		}
	}
	return nil
}

// decoded reads a payload. One that does not fit is the log's problem, which
// its owner tells; nothing is to be told of it here.
func decoded(e session.Event, into any) bool { return json.Unmarshal(e.Data, into) == nil }

// delta tells text as it streams.
func (t *teller) delta(d remote.Delta) error {
	b := t.streamed[d.Kind]
	if b == nil {
		b = &strings.Builder{}
		t.streamed[d.Kind] = b
	}
	b.WriteString(d.Text)
	return t.text(d.Kind, d.Text)
}

func (t *teller) text(kind, text string) error {
	switch {
	case text == "":
		return nil
	case kind == session.BlockReasoning:
		return t.tell(sdk.UpdateAgentThoughtText(text))
	}
	return t.tell(sdk.UpdateAgentMessageText(text))
}

// rest tells what of a committed text was not streamed.
func (t *teller) rest(kind, whole string) error {
	had := ""
	if b := t.streamed[kind]; b != nil {
		had = b.String()
	}
	delete(t.streamed, kind)
	rest, ok := strings.CutPrefix(whole, had)
	if !ok { // a part of the stream was left out
		rest = "\n\n" + whole
	}
	return t.text(kind, rest)
}

// event tells one event. own is one that the client shows itself: its own message,
// and the failure that answers its prompt.
func (t *teller) event(e session.Event, own bool) error {
	switch e.Type {
	case session.TypeTurnStart:
		var v session.TurnStart
		if decoded(e, &v) {
			t.turn = v.Turn
		}
	case session.TypeTurnEnd:
		return t.turnEnd(e, own)
	case session.TypeUserMessage:
		if own || e.SurfaceOp != nil {
			return nil
		}
		return t.user(e)
	case session.TypeRequestContext:
		var v session.RequestContext
		if decoded(e, &v) {
			t.window = v.ContextWindow
		}
	case session.TypeLLMRetry:
		return t.retry(e)
	case session.TypeCompactionStart:
		return t.brokenOff()
	case session.TypeAssistantMessage:
		return t.assistant(e)
	case session.TypeToolCall:
		var v session.ToolCall
		if decoded(e, &v) {
			return t.started(v.CallID, v.Name, v.Arguments)
		}
	case session.TypePTCDispatchStart:
		var v session.PTCStart
		if decoded(e, &v) {
			return t.started(v.SubCallID, v.Name, v.Arguments)
		}
	case session.TypeToolResult:
		var v session.ToolResult
		if decoded(e, &v) {
			return t.ended(v.Message.ToolCallID, v.Message.Content, v.Message.IsError, v.Meta)
		}
	case session.TypePTCDispatch:
		var v session.PTC
		if decoded(e, &v) {
			return t.ended(v.SubCallID, v.Content, v.IsError, nil)
		}
	case session.TypeTodoWrite:
		var v session.TodoWrite
		if decoded(e, &v) {
			return t.tell(plan(v))
		}
	}
	return nil
}

// user tells a message that came from elsewhere: from another shell, or before.
func (t *teller) user(e session.Event) error {
	var m session.UserMessage
	if !decoded(e, &m) {
		return nil
	}
	text := session.TextOf(m.Content)
	switch m.Source.Kind {
	case session.SourceUser, session.SourceGoal:
	case session.SourceQuestionReply:
		text = replyWords(text)
	default:
		return nil
	}
	return t.tell(sdk.UpdateUserMessageText(text))
}

// replyWords is a late answer as a person reads it.
func replyWords(text string) string {
	_, questions, answers, ok := session.ParseReply(text)
	if !ok {
		return text
	}
	var lines []string
	for _, q := range questions {
		for _, a := range answers {
			if a.ID != q.ID {
				continue
			}
			said := strings.Join(a.Selected, ", ")
			if a.Custom != "" {
				said = strings.TrimPrefix(said+", "+a.Custom, ", ")
			}
			if said == "" {
				said = "(skipped)"
			}
			lines = append(lines, q.Question+"\n→ "+said)
		}
	}
	return strings.Join(lines, "\n")
}

func (t *teller) assistant(e session.Event) error {
	var m session.AssistantMessage
	if !decoded(e, &m) {
		return nil
	}
	if err := t.rest(session.BlockReasoning, session.ReasoningOf(m.Message.Content)); err != nil {
		return err
	}
	if err := t.rest(session.BlockText, session.TextOf(m.Message.Content)); err != nil {
		return err
	}
	clear(t.streamed)
	for _, b := range m.Message.Content {
		if b.Type == session.BlockToolCall {
			t.calls[b.ID] = true
			if err := t.tell(sdk.SessionUpdate{ToolCall: t.call(b.ID, b.Name, b.Arguments, sdk.ToolCallStatusPending)}); err != nil {
				return err
			}
		}
	}
	return t.usage(m.Usage)
}

// usage tells how full the context is, and what the session has cost where that
// is known.
func (t *teller) usage(u *session.Usage) error {
	if u == nil {
		return nil
	}
	if u.CostUSD != nil {
		t.cost, t.priced = t.cost+*u.CostUSD, true
	}
	if t.window == 0 {
		return nil
	}
	told := &sdk.SessionUsageUpdate{Size: t.window, Used: int(u.InputTokens + u.CacheReadTokens + u.OutputTokens)}
	if t.priced {
		told.Cost = &sdk.Cost{Amount: t.cost, Currency: "USD"}
	}
	return t.tell(sdk.SessionUpdate{UsageUpdate: told})
}

// retry marks what was streamed of an attempt that failed and is repeated.
func (t *teller) retry(e session.Event) error {
	var v session.Retry
	if !decoded(e, &v) {
		return nil
	}
	return t.discard(fmt.Sprintf("The answer broke off, %s: what there was of it does not count, and it is asked for again.", v.Error.Code))
}

// brokenOff marks what was streamed and is in no message, as no attempt follows.
func (t *teller) brokenOff() error {
	return t.discard("The answer broke off: what there was of it does not count.")
}

// discard says of what was streamed, if anything was, that it does not count.
func (t *teller) discard(words string) error {
	if len(t.streamed) == 0 {
		return nil
	}
	clear(t.streamed)
	return t.text(session.BlockText, "\n\n*("+words+")*\n\n")
}

// turnEnd tells of an ending that the client's stop reason does not tell.
func (t *teller) turnEnd(e session.Event, own bool) error {
	var v session.TurnEnd
	if !decoded(e, &v) {
		return nil
	}
	if err := t.brokenOff(); err != nil {
		return err
	}
	words := ""
	switch r := v.Reason; {
	case r.Kind == session.EndMaxTokens:
		words = "The answer was cut at its token limit."
	case r.Kind == session.EndMaxSteps:
		words = "The limit of steps is reached; send a message to go on."
	case r.Kind == session.EndAborted && r.Cause != nil && r.Cause.Hook == "duration":
		words = "The time for this run is up; send a message to go on."
	case r.Kind == session.EndError && !own && r.Error != nil:
		words = "The model request failed: " + r.Error.Message
	}
	if words == "" {
		return nil
	}
	return t.text(session.BlockText, "\n\n*("+words+")*\n\n")
}

func plan(v session.TodoWrite) sdk.SessionUpdate {
	entries := []sdk.PlanEntry{}
	for _, d := range v.Todos {
		status := sdk.PlanEntryStatusPending
		switch d.Status {
		case "in_progress":
			status = sdk.PlanEntryStatusInProgress
		case "completed":
			status = sdk.PlanEntryStatusCompleted
		}
		entries = append(entries, sdk.PlanEntry{Content: d.Content, Priority: sdk.PlanEntryPriorityMedium, Status: status})
	}
	return sdk.UpdatePlan(entries...)
}
