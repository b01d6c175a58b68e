package remote

import (
	"reflect"
	"testing"

	"deepseek/internal/session"
)

func TestSubAgentsAreToldFromTheEventsOfTheirParent(t *testing.T) {
	o := serveHost(t, newHost())
	descriptor := func(call, child, parent string) session.Subagent {
		return session.Subagent{CallID: call, ChildSessionID: child, ParentSessionID: parent, Description: "look <&>"}
	}
	result := func(call, finish string) session.ToolResult {
		r := session.ToolResult{Message: session.ToolMessage{ToolCallID: call, Content: "x"}}
		if finish != "" {
			r.Meta = &session.ToolMeta{FinishReason: finish}
		}
		return r
	}
	raw := func(typ string, data any) rawEvent {
		o.log(typ, data)
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.events[len(o.events)-1]
	}
	note := func(child, finish string) SubagentNote {
		return SubagentNote{SessionID: "P", ChildSessionID: child, Description: "look <&>", FinishReason: finish}
	}
	agents := subagents{}
	for _, c := range []struct {
		name   string
		event  rawEvent
		method string
		want   SubagentNote
	}{
		{"a result of no sub-agent", raw(session.TypeToolResult, result("c1", "")), "", SubagentNote{}},
		{"one starts", raw(session.TypeSubagent, descriptor("c1", "A", "")), NoteSubagentStarted, note("A", "")},
		{"another, from code", raw(session.TypeSubagent, descriptor("c2:ptc:1", "B", "")), NoteSubagentStarted, note("B", "")},
		{"a text about it", raw(session.TypeUserMessage, map[string]string{"text": `"type":"subagent/descriptor"`}), "", SubagentNote{}},
		{"a result of another call", raw(session.TypeToolResult, result("c3", "completed")), "", SubagentNote{}},
		{"that of code ends", raw(session.TypePTCDispatch, session.PTC{PTCStart: session.PTCStart{SubCallID: "c2:ptc:1"}}), NoteSubagentFinished, note("B", "")},
		{"the first ends", raw(session.TypeToolResult, result("c1", "max-steps")), NoteSubagentFinished, note("A", "max-steps")},
		{"and does so once", raw(session.TypeToolResult, result("c1", "max-steps")), "", SubagentNote{}},
		{"what a sub-agent says of itself", raw(session.TypeSubagent, descriptor("c1", "P", "R")), "", SubagentNote{}},
		{"what cannot be read", rawEvent(`{"seq":1,"type":"subagent/descriptor","time":1,"data":{"callId":7}}`), "", SubagentNote{}},
	} {
		method, got := agents.note("P", c.event)
		if method != c.method || method != "" && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s %+v", c.name, method, got)
		}
	}
	if len(agents) != 0 {
		t.Errorf("%v", agents)
	}
}
