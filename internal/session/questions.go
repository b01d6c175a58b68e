package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// QuestionState is where a question stands. One that was removed has no state:
// it is not known any more.
type QuestionState string

// The states of a question.
const (
	QuestionOpen      QuestionState = "open"      // its call waits
	QuestionContinued QuestionState = "continued" // its call went on without an answer; it can be answered late
	QuestionSettled   QuestionState = "settled"   // it has its answers
)

// Tracked is one question, a batch that was asked by one call.
type Tracked struct {
	CallID    string        `json:"callId"` // of a question asked from code: the sub-call's
	State     QuestionState `json:"state"`
	Questions []Question    `json:"questions,omitempty"` // as the call asked them; let go of once settled
	Answers   []Answer      `json:"answers,omitzero"`    // once settled, and then never null; empty where a reply could not be read
	AskedAt   int64         `json:"askedAt"`             // ms since the epoch
	Message   int64         `json:"-"`                   // seq of the assistant message that the call is of
	Parent    string        `json:"-"`                   // of a question asked from code: the call of the model
	Late      bool          `json:"-"`                   // settled by a late answer
}

// Questions folds the log into the state of every question of timed mode. The
// calls of legacy mode are not tracked, and neither is a call whose questions
// cannot be read or would be refused: nobody could answer it later.
//
// A question is open from its call on, continued when the call has ended
// without an answer, settled when it has one, and removed when the call ended
// in any other way. What is settled or removed stays so. The inbox plays no
// part: a queued reply can still be discarded. Compaction plays none either.
//
// A sub-agent asks nobody, so what it asks is not tracked, not even if it was
// killed before it was told so. But its session can be gone on with by a
// person, who can be asked. The log tells one from the other: the parent's run
// is the first, and no parent ever goes on with it; every later run says its
// settings between two turns.
type Questions struct {
	subagent bool // the session is one's
	inTurn   bool
	resumed  bool // a later run than the first has begun
	timed    bool
	message  int64 // seq of the last assistant message
	asked    int
	byID     map[string]*tracked // nil: removed
	active   []*tracked          // open and continued, in the order asked
	open     int                 // of them
	settled  []*tracked          // in the order asked
}

type tracked struct {
	Tracked
	order int
}

// Apply consumes the next event.
func (q *Questions) Apply(e Event) error {
	switch e.Type {
	case TypeRequestHeader:
		return q.header(e)
	case TypeEndSeed:
		// What was asked before is the parent session's to answer. The header
		// stands: it is the one that the next calls are made under.
		*q = Questions{subagent: q.subagent, timed: q.timed}
	case TypeTurnStart:
		q.inTurn = true
	case TypeTurnEnd:
		q.inTurn = false
	case TypeSettings: // the data plays no part
		q.resumed = q.resumed || e.Seq > 0 && !q.inTurn
	case TypeAssistantMessage:
		q.message = e.Seq
	case TypeToolCall:
		return q.call(e)
	case TypeToolResult:
		return q.result(e)
	case TypePTCDispatchStart:
		return q.subCall(e)
	case TypePTCDispatch:
		return q.subResult(e)
	case TypeUserMessage:
		return q.reply(e)
	}
	return nil
}

// Of says whose log it is that is folded, before the first event of it.
func (q *Questions) Of(h Header) { q.subagent = h.Origin == OriginSubagent }

// QuickHeader applies a request/header whose data reads as it is written, which
// need not be checked before, and reports false, having done nothing, for others.
func (q *Questions) QuickHeader(data []byte) bool {
	timed, ok := quickTimed(data)
	if ok {
		q.timed = timed
	}
	return ok
}

// header reads whether calls are timed from now on: the tool's own schema says so.
func (q *Questions) header(e Event) error {
	if q.QuickHeader(e.Data) {
		return nil
	}
	var v struct {
		Header struct {
			Tools []struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"tools"`
		} `json:"header"`
	}
	if err := decode(e, &v); err != nil {
		return err
	}
	q.timed = false
	for _, t := range v.Header.Tools {
		if t.Name != AskTool {
			continue
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(t.Parameters, &schema) == nil {
			_, q.timed = schema.Properties["timeout"]
		}
	}
	return nil
}

// asks is the cheap test that keeps the arguments of other tools, which can be
// whole files, from being decoded.
func (q *Questions) asks(e Event) bool {
	return q.timed && (!q.subagent || q.resumed) && bytes.Contains(e.Data, []byte(AskTool))
}

func (q *Questions) call(e Event) error {
	if !q.asks(e) {
		return nil
	}
	var v ToolCall
	if err := decode(e, &v); err != nil {
		return err
	}
	if v.Name == AskTool {
		q.ask(e, v.CallID, "", v.Arguments)
	}
	return nil
}

func (q *Questions) subCall(e Event) error {
	if !q.asks(e) {
		return nil
	}
	var v PTCStart
	if err := decode(e, &v); err != nil {
		return err
	}
	if v.Name == AskTool {
		q.ask(e, v.SubCallID, v.RootCallID, v.Arguments)
	}
	return nil
}

func (q *Questions) ask(e Event, callID, parent, arguments string) {
	if _, seen := q.byID[callID]; seen || callID == "" {
		return
	}
	questions, _, err := ParseQuestions(arguments)
	if err != nil || CheckQuestions(questions) != nil {
		return // the call's result says what is wrong with it
	}
	if q.byID == nil {
		q.byID = map[string]*tracked{}
	}
	t := &tracked{order: q.asked, Tracked: Tracked{
		CallID: callID, State: QuestionOpen, Questions: questions,
		AskedAt: e.Time, Message: q.message, Parent: parent,
	}}
	q.asked++
	q.open++
	q.byID[callID] = t
	q.active = append(q.active, t)
}

func (q *Questions) result(e Event) error {
	if q.open == 0 {
		return nil
	}
	var v struct {
		Message struct {
			ToolCallID string `json:"toolCallId"`
			Content    string `json:"content"`
			IsError    bool   `json:"isError"`
		} `json:"message"`
		Error *ToolError `json:"error"`
	}
	if err := decode(e, &v); err != nil {
		return err
	}
	if t := q.byID[v.Message.ToolCallID]; t != nil && t.Parent == "" {
		code, failed := codeOf(v.Message.Content, v.Message.IsError, v.Error)
		q.end(t, v.Message.Content, failed, code == CodeOutcomeUnknown || code == CodeAskAborted)
	}
	// Code that has ended asks no more, but what it asked stays.
	for _, t := range q.active {
		if t.Parent != "" && t.Parent == v.Message.ToolCallID {
			q.goOn(t)
		}
	}
	return nil
}

func (q *Questions) subResult(e Event) error {
	if q.open == 0 {
		return nil
	}
	var v PTC
	if err := decode(e, &v); err != nil {
		return err
	}
	if t := q.byID[v.SubCallID]; t != nil && t.Parent != "" {
		code, failed := codeOf(v.Content, v.IsError, v.Error)
		q.end(t, v.Content, failed, code == CodeAskAborted)
	}
	return nil
}

// codeOf is the code of a failed call.
func codeOf(content string, isError bool, e *ToolError) (code string, failed bool) {
	switch {
	case e != nil:
		return e.Code, true
	case isError:
		code, _, _ = strings.Cut(content, ": ")
		return code, true
	}
	return "", false
}

// end is what the call's own result makes of an open question.
func (q *Questions) end(t *tracked, content string, failed, stays bool) {
	if t.State != QuestionOpen {
		return
	}
	if failed {
		if stays {
			q.goOn(t)
		} else {
			q.remove(t)
		}
		return
	}
	if id, ok := ParsePending(content); ok {
		if id == t.CallID {
			q.goOn(t)
		} else {
			q.remove(t) // the question it names is asked already
		}
		return
	}
	if batch, ok := ParseBatch(content); ok && CheckBatch(t.Questions, batch) == nil {
		q.settle(t, batch, false)
		return
	}
	q.remove(t)
}

func (q *Questions) reply(e Event) error {
	if len(q.active) == 0 || e.SurfaceOp != nil {
		return nil
	}
	var m UserMessage
	if err := decode(e, &m); err != nil {
		return err
	}
	t := q.byID[m.Source.CallID]
	if m.Source.Kind != SourceQuestionReply || t == nil || t.State == QuestionSettled {
		return nil
	}
	callID, _, batch, ok := ParseReply(TextOf(m.Content))
	if !ok || callID != t.CallID {
		batch = []Answer{}
	}
	q.settle(t, batch, true)
	return nil
}

func (q *Questions) goOn(t *tracked) {
	if t.State == QuestionOpen {
		t.State = QuestionContinued
		q.open--
	}
}

func (q *Questions) remove(t *tracked) {
	q.drop(t)
	q.byID[t.CallID] = nil
}

func (q *Questions) settle(t *tracked, batch []Answer, late bool) {
	q.drop(t)
	t.State, t.Questions, t.Answers, t.Late = QuestionSettled, nil, batch, late
	i, _ := slices.BinarySearchFunc(q.settled, t.order, func(s *tracked, order int) int { return s.order - order })
	q.settled = slices.Insert(q.settled, i, t)
}

// drop takes a question out of the active ones.
func (q *Questions) drop(t *tracked) {
	if t.State == QuestionOpen {
		q.open--
	}
	q.active = slices.DeleteFunc(q.active, func(a *tracked) bool { return a == t })
}

// Timed tells whether calls made now are of timed mode.
func (q *Questions) Timed() bool { return q.timed }

// Lookup is the question that a call asked; false if it is unknown or was removed.
func (q *Questions) Lookup(callID string) (Tracked, bool) {
	t := q.byID[callID]
	if t == nil {
		return Tracked{}, false
	}
	return t.copy(), true
}

// answerable tells whether an answer to the call's question can still come.
func (q *Questions) answerable(callID string) bool {
	t := q.byID[callID]
	return t != nil && t.State != QuestionSettled
}

// Active are the open and the continued questions, in the order asked.
func (q *Questions) Active() []Tracked { return copies(q.active) }

// Settled are the questions that have answers, in the order asked.
func (q *Questions) Settled() []Tracked { return copies(q.settled) }

// AskedBefore finds the first open or continued question of an earlier message
// that is the same as the one of the call. Calls of one message are never the same.
func (q *Questions) AskedBefore(callID string) (first string, found bool) {
	mine := q.byID[callID]
	if mine == nil || mine.State == QuestionSettled {
		return "", false
	}
	for _, t := range q.active {
		if t.Message < mine.Message && equalQuestions(t.Questions, mine.Questions) {
			return t.CallID, true
		}
	}
	return "", false
}

func copies(list []*tracked) []Tracked {
	out := make([]Tracked, len(list))
	for i, t := range list {
		out[i] = t.copy()
	}
	return out
}

func (t *tracked) copy() Tracked {
	c := t.Tracked
	c.Questions = slices.Clone(c.Questions)
	c.Answers = slices.Clone(c.Answers)
	return c
}
