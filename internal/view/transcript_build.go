package view

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"deepseek/internal/session"
)

// Bound cuts what a call was given or gave, and what a model thought, down to
// what is shown of it. Nil keeps it whole.
type Bound func(string) string

// Build makes the transcript of a session from its events. Where no owner is
// at work, it shows what repair would leave: an open turn as interrupted, open
// questions as continued. An error of the events ends it.
func Build(h session.Header, events iter.Seq2[session.Event, error], live bool, keep Bound) (*Transcript, error) {
	b := NewBuilder(keep)
	b.Of(h)
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if err := b.Apply(e); err != nil {
			return nil, err
		}
	}
	return b.End(h, live)
}

// Builder folds events into a transcript. It holds no more of the log than the
// transcript does. It is one goroutine's.
type Builder struct {
	keep   Bound
	opened bool  // calls are shown with what they were given
	next   int64 // seq of the next event

	questions session.Questions
	open      session.Turns
	inbox     session.Inbox

	turns []*Turn
	turn  *Turn   // that is open; nil between turns
	early []*Item // noted between turns: they stand in the next
	step  int

	calls     map[string]*Item
	asked     []*Item // questions, in the order asked
	approvals map[string]string
	receipts  map[string]session.Event // of queued messages, without data
	model     session.RequestConfig

	called   []session.Block // the calls of the last message, without arguments
	answered string          // the call that the last result is of
}

// NewBuilder begins a transcript.
func NewBuilder(keep Bound) *Builder {
	opened := keep != nil && keep("x") != ""
	if keep == nil {
		keep = func(s string) string { return s }
	}
	return &Builder{keep: keep, opened: opened, calls: map[string]*Item{}, approvals: map[string]string{}, receipts: map[string]session.Event{}}
}

// Of says whose log it is, before the first event of it.
func (b *Builder) Of(h session.Header) { b.questions.Of(h) }

// Open tells whether a turn is open.
func (b *Builder) Open() bool { return b.open.Open() }

// Apply consumes the next event.
func (b *Builder) Apply(e session.Event) error {
	b.next = e.Seq + 1
	if !session.KnownType(e.Type) {
		if e.Ignorable {
			return nil
		}
		return fmt.Errorf("%w: unknown event type %q at seq %d", session.ErrTooNew, e.Type, e.Seq)
	}
	for _, apply := range []func(session.Event) error{b.questions.Apply, b.inbox.Apply, b.apply} {
		if err := apply(e); err != nil {
			return err
		}
	}
	return b.open.Apply(b.light(e))
}

// light is the event without what the fold of open calls does not look at: most
// of a log is results and thoughts, and decoding them again takes its time.
func (b *Builder) light(e session.Event) session.Event {
	var v any
	switch {
	case e.Type == session.TypeToolResult && b.answered != "":
		v = session.ToolResult{Message: session.ToolMessage{ToolCallID: b.answered}}
	case e.Type == session.TypeAssistantMessage:
		v = session.AssistantMessage{Message: session.ModelMessage{Content: b.called}}
	default:
		return e
	}
	if slim, err := session.NewEvent(e.Type, e.Time, v); err == nil {
		return slim
	}
	return e
}

func (b *Builder) apply(e session.Event) error {
	switch e.Type {
	case session.TypeTurnStart:
		return with(e, b.turnStart)
	case session.TypeTurnEnd:
		return with(e, func(e session.Event, v session.TurnEnd) {
			if b.turn != nil {
				b.turn.Reason = &v.Reason
			}
			b.turn, b.step = nil, 0
		})
	case session.TypeStepStart:
		return with(e, func(_ session.Event, v session.StepMark) {
			b.step = v.Step
			if b.turn != nil {
				b.turn.Steps++
			}
		})
	case session.TypeStepEnd:
		return nil
	case session.TypeUserMessage:
		return with(e, b.user)
	case session.TypeAssistantMessage:
		return with(e, b.assistant)
	case session.TypeToolCall:
		return with(e, func(e session.Event, v session.ToolCall) { b.begin(e, b.call(e, v.CallID, v.Name, v.Arguments, "")) })
	case session.TypeToolResult:
		return with(e, b.result)
	case session.TypePTCDispatchStart:
		return with(e, func(e session.Event, v session.PTCStart) {
			b.begin(e, b.call(e, v.SubCallID, v.Name, v.Arguments, v.ParentCallID))
		})
	case session.TypePTCDispatch:
		return with(e, func(e session.Event, v session.PTC) {
			b.end(b.call(e, v.SubCallID, v.Name, v.Arguments, v.ParentCallID), v.Content, codeOf(v.Content, v.IsError, v.Error), nil)
		})
	case session.TypeInboxSpliced:
		return with(e, func(e session.Event, v session.InboxSpliced) {
			for _, m := range v.Inserted {
				b.receipts[m.ID] = session.Event{Seq: e.Seq, Time: e.Time}
			}
		})
	}
	return b.note(e)
}

// with decodes the payload of an event.
func with[T any](e session.Event, do func(session.Event, T)) error {
	var v T
	if err := session.Decode(e, &v); err != nil {
		return err
	}
	do(e, v)
	return nil
}

func (b *Builder) turnStart(e session.Event, v session.TurnStart) {
	b.turn = &Turn{Turn: v.Turn, Time: e.Time, Items: b.early}
	if b.turn.Items == nil {
		b.turn.Items = []*Item{}
	}
	b.early, b.step = nil, 0
	b.turns = append(b.turns, b.turn)
}

// add puts an item at the end of the open turn.
func (b *Builder) add(e session.Event, i Item) *Item {
	i.Seq, i.Time, i.Step = e.Seq, e.Time, b.step
	if b.turn == nil {
		b.early = append(b.early, &i)
	} else {
		b.turn.Items = append(b.turn.Items, &i)
	}
	return &i
}

func (b *Builder) user(e session.Event, m session.UserMessage) {
	delete(b.receipts, m.ID)
	if op := e.SurfaceOp; op != nil {
		b.add(e, Item{
			Kind: KindNote, Event: session.TypeCompactionSummary, major: true,
			Text: "the conversation up to here was summed up for the model\n" + b.keep(session.TextOf(m.Content)),
		})
		return
	}
	b.add(e, b.message(m))
}

// message is a user message, or a reply: its source alone says which.
func (b *Builder) message(m session.UserMessage) Item {
	text := session.TextOf(m.Content)
	i := Item{Kind: KindUser, Source: &m.Source, Text: text}
	switch m.Source.Kind {
	case session.SourceQuestionReply:
		i.Kind, i.CallID = KindReply, m.Source.CallID
		if callID, questions, answers, ok := session.ParseReply(text); ok && callID == i.CallID {
			i.Questions, i.Answers, i.Text = questions, answers, ""
		}
	default:
		if !i.standsAlone() {
			i.Text = b.keep(text)
		}
	}
	return i
}

func (b *Builder) assistant(e session.Event, v session.AssistantMessage) {
	content := v.Message.Content
	b.add(e, Item{
		Kind: KindAssistant, Text: session.TextOf(content), Reasoning: b.keep(session.ReasoningOf(content)),
		Interrupted: v.Interrupted, Usage: v.Usage,
	})
	b.called = []session.Block{}
	for _, c := range content {
		if c.Type == session.BlockToolCall {
			b.called = append(b.called, session.Block{Type: c.Type, ID: c.ID, Name: c.Name})
			delete(b.calls, c.ID) // one of an earlier message is another call
			b.call(e, c.ID, c.Name, c.Arguments, "")
		}
	}
}

// call is the item of a call. The first event that names the call makes it, so
// that calls stand in the model's order whatever order they run in.
func (b *Builder) call(e session.Event, id, name, arguments, parent string) *Item {
	if i, ok := b.calls[id]; ok {
		return i
	}
	i := Item{Kind: KindTool, CallID: id, Parent: parent, Name: strings.Clone(Fit(name, 200, "…")), title: strings.Clone(Fit(CallTitle(arguments), 400, "…")), Arguments: b.keep(arguments)}
	if b.opened {
		i.given = strings.Clone(givenText(arguments, b.keep))
	}
	if name == session.AskTool {
		if questions, _, err := session.ParseQuestions(arguments); err == nil && session.CheckQuestions(questions) == nil {
			i.Kind, i.Questions, i.tracked, i.Arguments = KindQuestion, questions, b.questions.Timed(), ""
		}
	}
	at := b.add(e, i)
	b.nest(at)
	if at.Kind == KindQuestion {
		b.asked = append(b.asked, at)
	}
	b.calls[id] = at
	return at
}

// nest moves the item just added to behind the call that it belongs to, and
// what else belongs to that.
func (b *Builder) nest(i *Item) {
	if i.Parent == "" || b.turn == nil {
		return
	}
	items := b.turn.Items
	last := len(items) - 1
	at := last - 1
	for at >= 0 && items[at].CallID != i.Parent {
		at--
	}
	if at < 0 {
		return
	}
	for at++; at < last && items[at].Parent == i.Parent; at++ {
	}
	copy(items[at+1:], items[at:last])
	items[at] = i
}

// begin notes that a call runs.
func (b *Builder) begin(e session.Event, i *Item) {
	i.Seq, i.Time, i.started = e.Seq, e.Time, true
}

func (b *Builder) result(e session.Event, v session.ToolResult) {
	b.answered = v.Message.ToolCallID
	name := ""
	if v.Error != nil {
		name = v.Error.Name
	}
	i := b.call(e, v.Message.ToolCallID, name, "", "")
	if !i.started {
		i.Seq, i.Time = e.Seq, e.Time
	}
	if m := v.Meta; m != nil {
		m.Observed = nil // of no interest to a reader
		m.Diff = b.keep(m.Diff)
		if reflect.ValueOf(*m).IsZero() {
			v.Meta = nil
		}
	}
	b.end(i, v.Message.Content, codeOf(v.Message.Content, v.Message.IsError, v.Error), v.Meta)
}

// codeOf is the code of a failed call, "" of one that did not fail.
func codeOf(content string, isError bool, failed *session.ToolError) string {
	if failed != nil && failed.Code != "" {
		return failed.Code
	}
	if !isError {
		return ""
	}
	code, _, ok := strings.Cut(content, ": ")
	if !ok || strings.ContainsAny(code, " \n") {
		return "ERROR"
	}
	return code
}

// end notes what a call gave.
func (b *Builder) end(i *Item, content, code string, meta *session.ToolMeta) {
	i.ended, i.Code, i.Meta = true, code, meta
	if i.Kind != KindQuestion || code != "" {
		i.Result = b.keep(content)
		return
	}
	if first, ok := session.ParsePending(content); ok {
		if first != i.CallID {
			i.SameAs = first
		}
		return
	}
	if batch, ok := session.ParseBatch(content); ok && session.CheckBatch(i.Questions, batch) == nil {
		i.Answers = batch
		return
	}
	i.Result = b.keep(content)
}

// End is the transcript. With an owner at work the builder may go on after it.
func (b *Builder) End(h session.Header, live bool) (*Transcript, error) {
	if !live {
		closers, err := b.open.Closers(h.ID, &b.questions)
		if err != nil {
			return nil, err
		}
		for _, e := range closers {
			e.Seq = b.next
			if err := b.Apply(e); err != nil {
				return nil, err
			}
		}
	}
	t := &Transcript{SessionID: h.ID, Header: h, Turns: slices.Clone(b.turns), Live: live}
	if t.Turns == nil {
		t.Turns = []*Turn{}
	}
	for _, list := range []string{session.NextStep, session.NextTurn} {
		for _, m := range b.inbox.Queued(list) {
			i := b.message(m)
			i.Seq, i.Time = b.receipts[m.ID].Seq, b.receipts[m.ID].Time
			t.Queued = append(t.Queued, &i)
		}
	}
	switch n := len(t.Turns); {
	case len(b.early) == 0:
	case n > 0:
		last := *t.Turns[n-1]
		last.Items = append(slices.Clip(last.Items), b.early...)
		t.Turns[n-1] = &last
	default:
		t.Queued = append(slices.Clone(b.early), t.Queued...)
	}
	for _, i := range b.asked {
		b.settle(i)
	}
	t.Questions = b.list()
	return t, nil
}
