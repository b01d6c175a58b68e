package session

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// State is everything an agent knows, rebuilt from the log by applying its
// events in order. The zero value is a session without events.
type State struct {
	Next      int64 // seq of the next event
	Inbox     Inbox
	Turns     Turns
	History   History
	Questions Questions
	Goals     Goals
	Plan      bool // only reading, until a person has approved a plan

	LastHeader  json.RawMessage // of the last request/header, as logged; nil before the first
	LastContext RequestContext
	Settings    *Settings // the last; nil before the first
	Committed   int       // model requests that have committed, those for a summary too, cut ones not
	Observed    []Observed

	header       *HeaderBody // LastHeader, decoded; nil before the first need
	callIDs      map[string]struct{}
	instructions *string // the last that a model was sent
}

// Of says whose log it is that is folded, before the first event of it.
func (s *State) Of(h Header) { s.Questions.Of(h) }

// Apply consumes the next event. An unknown type is refused unless it is ignorable.
func (s *State) Apply(e Event) error {
	if e.Seq != s.Next {
		return fmt.Errorf("%w: event %d where %d should stand", ErrDamaged, e.Seq, s.Next)
	}
	s.Next++
	if !KnownType(e.Type) {
		if e.Ignorable {
			return nil
		}
		return fmt.Errorf("%w: unknown event type %q at seq %d", ErrTooNew, e.Type, e.Seq)
	}
	e = e.Shared()
	for _, apply := range []func(Event) error{s.Questions.Apply, s.Turns.Apply, s.History.Apply, s.Inbox.Apply, s.Goals.Apply, s.note} {
		if err := apply(e); err != nil {
			return err
		}
	}
	return nil
}

// note keeps the small facts that need no fold of their own.
func (s *State) note(e Event) error {
	switch e.Type {
	case TypeRequestHeader:
		var v struct {
			Header json.RawMessage `json:"header"`
		}
		if err := decode(e, &v); err != nil {
			return err
		}
		s.LastHeader, s.header = bytes.Clone(v.Header), nil
	case TypeRequestContext:
		return decode(e, &s.LastContext)
	case TypeSettings:
		var v Settings
		if err := decode(e, &v); err != nil {
			return err
		}
		s.Settings = &v
	case TypePlanMode:
		var v PlanMode
		if err := decode(e, &v); err != nil {
			return err
		}
		s.Plan = v.Active
	case TypeAssistantMessage:
		var v AssistantMessage
		if err := decode(e, &v); err != nil {
			return err
		}
		if !v.Interrupted {
			s.Committed++
		}
		for _, b := range v.Message.Content {
			if b.Type == BlockToolCall {
				s.useCallID(b.ID)
			}
		}
	case TypePTCDispatchStart:
		var v PTCStart
		if err := decode(e, &v); err != nil {
			return err
		}
		s.useCallID(v.SubCallID)
	case TypeCompactionSummary:
		s.Committed++
	case TypeUserMessage:
		if !bytes.Contains(e.Data, []byte(SourceAgentInstructions)) {
			return nil // most messages are read once, by the history
		}
		var v UserMessage
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Source.Kind == SourceAgentInstructions {
			text := TextOf(v.Content)
			s.instructions = &text
		}
	case TypeToolResult:
		var v ToolResult
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Meta != nil {
			s.Observed = append(s.Observed, v.Meta.Observed...)
		}
	}
	return nil
}

func (s *State) useCallID(id string) {
	if s.callIDs == nil {
		s.callIDs = map[string]struct{}{}
	}
	s.callIDs[id] = struct{}{}
}

// UsedCallID tells whether a call of this session, or one made by code, has had the id.
func (s *State) UsedCallID(id string) bool {
	_, ok := s.callIDs[id]
	return ok
}

// Instructions is the text of the last message of agent instructions, whether a
// model was sent it or it is queued; false if there was none. One that was
// discarded from the queue does not count.
func (s *State) Instructions() (string, bool) {
	if m, ok := s.Inbox.last(SourceAgentInstructions); ok {
		return TextOf(m.Content), true
	}
	return s.AdmittedInstructions()
}

// AdmittedInstructions is the text of the last message of agent instructions
// that the history has had; false if there was none.
func (s *State) AdmittedInstructions() (string, bool) {
	if s.instructions == nil {
		return "", false
	}
	return *s.instructions, true
}

// HeaderBody is the last request header, which is the state's: callers change
// nothing in it. False before the first.
func (s *State) HeaderBody() (HeaderBody, bool, error) {
	if s.LastHeader == nil {
		return HeaderBody{}, false, nil
	}
	if s.header == nil {
		var b HeaderBody
		if err := json.Unmarshal(s.LastHeader, &b); err != nil {
			return b, false, fmt.Errorf("%w: request/header: %w", ErrDamaged, PlainJSON(err))
		}
		s.header = &b
	}
	return *s.header, true, nil
}

// CodeQuestions is how the questions stand that the code of an open call has
// asked, with the answers in full: lines that go below the result of code which
// did not come to its end, and so could not tell. It is empty where none was asked.
func (s *State) CodeQuestions(callID string) string {
	return s.Turns.codeQuestions(callID, &s.Questions)
}

// Repair closes what a crash left open: it applies the closers and returns
// them, with their seqs, for the log. Applied to a sound state it does nothing.
func (s *State) Repair(sessionID string) ([]Event, error) {
	closers, err := s.Turns.Closers(sessionID, &s.Questions)
	if err != nil {
		return nil, err
	}
	for i := range closers {
		closers[i].Seq = s.Next
		if err := s.Apply(closers[i]); err != nil {
			return nil, err
		}
	}
	return closers, nil
}
