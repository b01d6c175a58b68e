package session

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Turns folds which turn, step and compaction are open, and which calls have no
// result yet.
type Turns struct {
	Turn, Step int // the last ones begun; Step is 0 before the first of a turn
	turnOpen   bool
	stepOpen   bool
	compacting bool
	replaced   bool // the open compaction has put its message in place
	calls      []OpenCall
	plan       bool // the session is in plan mode
	lastTime   int64
}

// OpenCall is a call of the last assistant message without a result.
type OpenCall struct {
	Call
	Started bool // a tool/call was logged
	subs    subCalls
	fate    fate
}

// Apply consumes the next event.
func (t *Turns) Apply(e Event) error {
	t.lastTime = e.Time
	switch e.Type {
	case TypeTurnStart:
		var v TurnStart
		if err := decode(e, &v); err != nil {
			return err
		}
		t.Turn, t.Step, t.turnOpen, t.stepOpen, t.calls = v.Turn, 0, true, false, nil
	case TypeStepStart:
		var v StepMark
		if err := decode(e, &v); err != nil {
			return err
		}
		t.Step, t.stepOpen = v.Step, true
	case TypeAssistantMessage:
		var v AssistantMessage
		if err := decode(e, &v); err != nil {
			return err
		}
		t.calls = nil
		for _, b := range v.Message.Content {
			if b.Type == BlockToolCall {
				t.calls = append(t.calls, OpenCall{Call: Call{ID: b.ID, Name: b.Name, Arguments: b.Arguments}})
			}
		}
	case TypeToolCall:
		var v ToolCall
		if err := decode(e, &v); err != nil {
			return err
		}
		if i := t.index(v.CallID); i >= 0 {
			t.calls[i].Started = true
		}
	case TypePTCDispatchStart:
		var v PTCStart
		if err := decode(e, &v); err != nil {
			return err
		}
		if i := t.index(v.ParentCallID); i >= 0 {
			t.calls[i].subs.start(v)
		}
	case TypePTCDispatch:
		var v PTC
		if err := decode(e, &v); err != nil {
			return err
		}
		if i := t.index(v.ParentCallID); i >= 0 {
			t.calls[i].subs.end(v)
		}
	case TypeApprovalAsked:
		var v ApprovalAsked
		if err := decode(e, &v); err != nil {
			return err
		}
		if f := t.fate(v.CallID); f != nil {
			f.asked++
		}
	case TypeApprovalDecided:
		var v ApprovalDecided
		if err := decode(e, &v); err != nil {
			return err
		}
		if f := t.fate(v.CallID); f != nil {
			f.decided(v)
		}
	case TypeSubagent:
		var v Subagent
		if err := decode(e, &v); err != nil {
			return err
		}
		if f := t.fate(v.CallID); f != nil && v.ParentSessionID == "" {
			f.child = &v
		}
	case TypePlanMode:
		var v PlanMode
		if err := decode(e, &v); err != nil {
			return err
		}
		t.plan = v.Active
	case TypeToolResult:
		var v ToolResult
		if err := decode(e, &v); err != nil {
			return err
		}
		if i := t.index(v.Message.ToolCallID); i >= 0 {
			t.calls = slices.Delete(t.calls, i, i+1)
		}
	case TypeStepEnd:
		t.stepOpen = false
	case TypeCompactionStart:
		t.compacting, t.replaced = true, false
	case TypeUserMessage:
		t.replaced = t.replaced || e.SurfaceOp != nil
	case TypeCompactionEnd:
		t.compacting = false
	case TypeTurnEnd:
		var v TurnEnd
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Reason.Kind == "" {
			return fmt.Errorf("%w: event %d: a turn/end without a reason", ErrDamaged, e.Seq)
		}
		t.turnOpen, t.stepOpen, t.compacting, t.calls = false, false, false, nil
	}
	return nil
}

func (t *Turns) index(callID string) int {
	return slices.IndexFunc(t.calls, func(c OpenCall) bool { return c.ID == callID })
}

// fate is that of an open call or of an open sub-call; nil if there is none.
func (t *Turns) fate(callID string) *fate {
	for i := range t.calls {
		c := &t.calls[i]
		if c.ID == callID {
			return &c.fate
		}
		if s := c.subs.open(callID); s != nil {
			return &s.fate
		}
	}
	return nil
}

// Open tells whether a turn is open.
func (t *Turns) Open() bool { return t.turnOpen }

// StepOpen tells whether a step is open.
func (t *Turns) StepOpen() bool { return t.stepOpen }

// codeQuestions is how the questions stand that the code of an open call asked.
func (t *Turns) codeQuestions(callID string, asked *Questions) string {
	i := t.index(callID)
	if i < 0 {
		return ""
	}
	return t.calls[i].subs.questions(asked)
}

// Names of tools whose calls the log is read for.
const (
	AskTool  = "ask_user_question" // asks the user
	PlanTool = "exit_plan_mode"    // asks the user to approve a plan
)

// Closers are the events that close what a crash left open, without seq: a
// result for each unanswered call in the model's order, the end of a
// compaction, step/end, turn/end.
// They are a function of the log alone, ids and times included, so that a
// repair which is itself cut off and begun again leads to the same bytes. asked
// is the fold of the same events: a model is told that a question can still be
// answered only where that is so.
func (t *Turns) Closers(sessionID string, asked *Questions) ([]Event, error) {
	if !t.turnOpen {
		return nil, nil
	}
	var out []Event
	add := func(typ string, data any) error {
		e, err := NewEvent(typ, t.lastTime, data)
		out = append(out, e)
		return err
	}
	for _, c := range t.calls {
		text, code := notStarted, CodeNotStarted
		if c.Started {
			text, code = c.unknown(asked, t.plan)+c.subs.text(asked), CodeOutcomeUnknown
		}
		err := add(TypeToolResult, ToolResult{
			Turn: t.Turn, Step: t.Step,
			Message: ToolMessage{ID: repairID(t.lastTime, sessionID, c.ID), Role: "tool", ToolCallID: c.ID, Content: text, IsError: true},
			Error:   &ToolError{Name: c.Name, Code: code},
		})
		if err != nil {
			return nil, err
		}
	}
	if t.compacting {
		end := CompactionEnd{OK: t.replaced}
		if !end.OK {
			end.Error = &ErrorInfo{Code: CodeInterrupted, Message: "the program ended before the conversation was summed up"}
		}
		if err := add(TypeCompactionEnd, end); err != nil {
			return nil, err
		}
	}
	if t.stepOpen {
		if err := add(TypeStepEnd, StepMark{Turn: t.Turn, Step: t.Step}); err != nil {
			return nil, err
		}
	}
	if err := add(TypeTurnEnd, TurnEnd{Turn: t.Turn, Reason: Reason{Kind: EndInterrupted}}); err != nil {
		return nil, err
	}
	return out, nil
}

// repairID is a UUID v7 made from the log instead of a clock and chance.
func repairID(ms int64, sessionID, callID string) string {
	sum := sha256.Sum256([]byte(sessionID + "\x00" + callID))
	var id uuid.UUID
	copy(id[6:], sum[:])
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
