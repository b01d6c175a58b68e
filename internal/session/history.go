package session

import (
	"encoding/json"
	"fmt"
)

// History folds the log into what a model is sent. It only grows, and what it
// has once held keeps its place, so that request N+1 begins with the messages
// of request N; the exceptions are compaction and pruning.
type History struct {
	entries []entry
	slots   map[string]int // open call id -> its place in entries

	counted int64 // tokens that the provider counted at its last answer; 0 = nothing that still holds
	upTo    int   // how many entries are in that count
}

// entry is a message with the event it comes from. A tool entry without an
// answer yet has open set: results take the place that their call had in the
// model's message, in whatever order they are logged.
type entry struct {
	seq    int64
	msg    Message
	open   bool
	kind   string // source of a user message
	sum    bool   // it replaced others
	tokens int64  // estimated when first asked for; 0 before
}

// Apply consumes the next event.
func (h *History) Apply(e Event) error {
	switch e.Type {
	case TypeUserMessage:
		var m UserMessage
		if err := decode(e, &m); err != nil {
			return err
		}
		in := entry{seq: e.Seq, kind: m.Source.Kind, msg: Message{Role: RoleUser, Text: TextOf(m.Content)}}
		if e.SurfaceOp != nil {
			in.sum = true
			h.replace(e.SurfaceOp, in)
			return nil
		}
		h.entries = append(h.entries, in)
	case TypeAssistantMessage:
		var m AssistantMessage
		if err := decode(e, &m); err != nil {
			return err
		}
		h.addAssistant(e.Seq, m.Message.Content, m.Usage)
	case TypeToolResult:
		var r ToolResult
		if err := decode(e, &r); err != nil {
			return err
		}
		h.answer(e.Seq, r.Message)
	case TypeCompactionPrune:
		var p CompactionPrune
		if err := decode(e, &p); err != nil {
			return err
		}
		h.prune(p.Seqs)
	case TypeRequestHeader:
		var v struct {
			Reason string `json:"reason"`
		}
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Reason == HeaderChange {
			h.recount() // by other tools, or by another model's tokens
		}
	}
	return nil
}

func (h *History) addAssistant(seq int64, content []Block, usage *Usage) {
	defer func() { h.count(usage, seq) }()
	m := Message{Role: RoleAssistant, Text: TextOf(content), Reasoning: ReasoningOf(content)}
	for _, b := range content {
		if b.Type == BlockToolCall {
			m.Calls = append(m.Calls, Call{ID: b.ID, Name: b.Name, Arguments: b.Arguments})
		}
	}
	// A strict server refuses a message with neither content nor calls: one
	// that was cut while the model still reasoned is kept in the log only.
	if m.Text == "" && len(m.Calls) == 0 {
		return
	}
	h.entries = append(h.entries, entry{seq: seq, msg: m})
	if len(m.Calls) > 0 && h.slots == nil {
		h.slots = map[string]int{}
	}
	for _, c := range m.Calls {
		h.slots[c.ID] = len(h.entries)
		h.entries = append(h.entries, entry{seq: seq, open: true, msg: Message{Role: RoleTool, CallID: c.ID}})
	}
}

// answer fills the place of the call; a result that answers nothing open is no message.
func (h *History) answer(seq int64, m ToolMessage) {
	i, ok := h.slots[m.ToolCallID]
	if !ok {
		return
	}
	delete(h.slots, m.ToolCallID)
	h.entries[i] = entry{seq: seq, msg: Message{Role: RoleTool, CallID: m.ToolCallID, Text: m.Content}}
}

// replace puts in where the first entry of the range stood, and drops the range.
func (h *History) replace(op *SurfaceOp, in entry) {
	kept := make([]entry, 0, len(h.entries))
	placed := false
	for _, e := range h.entries {
		if e.seq < op.FromSeq || e.seq > op.ToSeq {
			kept = append(kept, e)
			continue
		}
		if !placed {
			kept, placed = append(kept, in), true
		}
	}
	if !placed {
		kept = append(kept, in)
	}
	h.entries = kept
	h.recount()
	clear(h.slots)
	for i, e := range h.entries {
		if e.open {
			h.slots[e.msg.CallID] = i
		}
	}
}

// Pruned stands in for a tool result that compaction left out.
const Pruned = "[this result was left out to save room; if it is needed, call the tool again, for a part of it or with fewer calls at once]"

func (h *History) prune(seqs []int64) {
	gone := make(map[int64]bool, len(seqs))
	for _, s := range seqs {
		gone[s] = true
	}
	for i := range h.entries {
		if e := &h.entries[i]; e.msg.Role == RoleTool && !e.open && gone[e.seq] {
			e.msg.Text, e.tokens = Pruned, 0
		}
	}
	h.recount()
}

// Messages is the history to send. A call without an answer is an error: no
// server accepts such a history, and the engine never asks for one.
func (h *History) Messages() ([]Message, error) {
	for id := range h.slots {
		return nil, fmt.Errorf("tool call %s has no result", id)
	}
	out := make([]Message, len(h.entries))
	for i, e := range h.entries {
		out[i] = e.msg
	}
	return out, nil
}

// decode reads the payload of an event. That of a Shared one is decoded once for
// all folds: they read what they are handed, and change nothing behind its pointers.
func decode[T any](e Event, into *T) error {
	if e.read != nil {
		if v, ok := e.read.payload.(*T); ok {
			*into = *v
			return nil
		}
	}
	if !quick(e.Data, into) {
		if err := json.Unmarshal(e.Data, into); err != nil {
			return fmt.Errorf("%w: event %d, %s: %w", ErrDamaged, e.Seq, e.Type, PlainJSON(err))
		}
	}
	if e.read != nil {
		v := *into
		e.read.payload = &v
	}
	return nil
}

// Decode reads the payload of an event, as the folds do: what a long log is full
// of much faster than encoding/json. An error is ErrDamaged and names the event.
func Decode[T any](e Event, into *T) error { return decode(e, into) }

// reading is what was last decoded of an event, a pointer to it. It is of the
// goroutine that applies the event.
type reading struct{ payload any }
