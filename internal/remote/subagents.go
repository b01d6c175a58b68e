package remote

import (
	"bytes"
	"encoding/json"

	"deepseek/internal/session"
)

// subagents finds, in the events of a session, those by which its sub-agents
// begin and end: the descriptor, and the result of the call that delegated. It
// holds those that have begun and not ended, by call. One goroutine's.
type subagents map[string]SubagentNote

// note is the notification that an event calls for; method is "" for most.
func (s subagents) note(sessionID string, raw rawEvent) (method string, n SubagentNote) {
	switch {
	case hasType(raw, session.TypeSubagent):
		var e struct{ Data session.Subagent }
		if json.Unmarshal(raw, &e) != nil || e.Data.CallID == "" || e.Data.ParentSessionID != "" {
			return "", n // of another version, or the session's own
		}
		n = SubagentNote{SessionID: sessionID, ChildSessionID: e.Data.ChildSessionID, Description: e.Data.Description}
		s[e.Data.CallID] = n
		return NoteSubagentStarted, n
	case len(s) > 0 && (hasType(raw, session.TypeToolResult) || hasType(raw, session.TypePTCDispatch)):
		var e struct {
			Data struct {
				Message   struct{ ToolCallID string } // of a model's call
				Meta      session.ToolMeta
				SubCallID string // of one that code made
			}
		}
		if json.Unmarshal(raw, &e) != nil {
			return "", n
		}
		id := e.Data.Message.ToolCallID + e.Data.SubCallID // one of them
		n, ok := s[id]
		if !ok {
			return "", n
		}
		delete(s, id)
		n.FinishReason = e.Data.Meta.FinishReason
		return NoteSubagentFinished, n
	}
	return "", n
}

// hasType tells the type of a line by its beginning, where the log puts it.
func hasType(raw rawEvent, typ string) bool {
	const place = len(`{"seq":9223372036854775807,"type":`)
	return bytes.Contains(raw[:min(len(raw), place+len(typ)+2)], []byte(`"type":"`+typ+`"`))
}
