package remote

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
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

// A client that joins while sub-agents work is told their end, wherever in its
// pages they began, and that of those which a subscription told before it moved.
func TestTheEndOfASubAgentIsToldToWhoJoinedMeanwhile(t *testing.T) {
	o := serveHost(t, newHost())
	begin := func(call string) {
		o.log(session.TypeSubagent, session.Subagent{CallID: call, ChildSessionID: "S" + call, Description: "look"})
	}
	end := func(call string) {
		o.log(session.TypeToolResult, session.ToolResult{Message: session.ToolMessage{ToolCallID: call}, Meta: &session.ToolMeta{FinishReason: "completed"}})
	}
	filler := func() {
		o.log(session.TypeTitle, map[string]string{"title": strings.Repeat("x", 9<<10)})
	}
	conn := o.raw(t)
	in := bufio.NewReaderSize(conn, 64<<10)
	var told []string
	until := func(it func(message) bool) message {
		t.Helper()
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%v, told %v", err, told)
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(m.Method, "subagent.") {
				var n SubagentNote
				if err := json.Unmarshal(m.Params, &n); err != nil {
					t.Fatal(err)
				}
				told = append(told, strings.TrimPrefix(m.Method, "subagent.")+" "+n.ChildSessionID)
			}
			if it(m) {
				return m
			}
		}
	}
	id := 0
	read := func(from int64, more bool) {
		t.Helper()
		id++
		if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"session/read","params":{"fromSeq":%d}}`+"\n", id, from); err != nil {
			t.Fatal(err)
		}
		m := until(func(m message) bool { return string(m.ID) == fmt.Sprint(id) })
		if !strings.HasSuffix(string(m.Result), fmt.Sprintf(`"more":%v}`, more)) {
			t.Fatalf("read from %d: %.100s", from, m.Result)
		}
	}
	mark := func(title string) {
		t.Helper()
		o.log(session.TypeTitle, map[string]string{"title": title})
		until(func(m message) bool { return m.Method == NoteEvent && strings.Contains(string(m.Params), title) })
	}

	begin("1")
	begin("2")
	end("2")
	filler()
	begin("3")
	filler() // two pages
	read(0, true)
	read(4, false)
	end("3")
	begin("4")
	mark("moved")
	read(5, false) // a page that shows neither
	end("1")
	end("4")
	end("2")
	mark("last")
	want := []string{"finished S3", "started S4", "finished S1", "finished S4"}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		t.Fatal(err)
	}
}
