package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestWrongParametersAreRefusedWithTheirPath(t *testing.T) {
	s := newWorld(t, "responses: [{text: fine}]").start()
	id := s.begun()
	blocks := func(list string) string { return fmt.Sprintf(`{"sessionId":%q,"prompt":%s}`, id, list) }
	begin := func(servers string) string { return fmt.Sprintf(`{"cwd":%q,"mcpServers":%s}`, s.ws, servers) }
	for _, c := range []struct{ name, method, params, path, says string }{
		{"a list", "session/prompt", `[]`, "params", "got an array, want an object"},
		{"text", "session/list", `"x"`, "params", "got a string, want an object"},
		{"a folder of another kind", "session/new", `{"cwd":5,"mcpServers":[]}`, "cwd", "got a number, want a string"},
		{"no folder", "session/new", `{"mcpServers":[]}`, "cwd", "is missing"},
		{"an empty folder", "session/new", `{"cwd":"","mcpServers":[]}`, "cwd", "must be an absolute path"},
		{"no servers", "session/new", `{"cwd":"/"}`, "mcpServers", "is missing"},
		{"null servers", "session/new", `{"cwd":"/","mcpServers":null}`, "mcpServers", "got null, want an array"},
		{"a server of another kind", "session/new", begin(`["x"]`), "mcpServers[0]", "got a string, want an object"},
		{"a command of another kind", "session/new", begin(`[{"name":"x","command":"x","args":[],"env":[]},{"name":"x","command":7,"args":[],"env":[]}]`), "mcpServers[1].command", "got a number, want a string"},
		{"a variable of another kind", "session/new", begin(`[{"name":"x","command":"x","args":[],"env":[{"name":"a","value":1}]}]`), "mcpServers[0].env[0].value", "got a number, want a string"},
		{"a server without a command", "session/new", begin(`[{"name":"x","args":[],"env":[]}]`), "mcpServers[0].command", "is missing"},
		{"headers of another kind", "session/new", begin(`[{"type":"http","name":"x","url":"http://127.0.0.1:1","headers":{}}]`), "mcpServers[0].headers", "got an object, want an array"},
		{"a folder among more", "session/load", `{"sessionId":"x","cwd":"/","mcpServers":[],"additionalDirectories":[1]}`, "additionalDirectories[0]", "got a number, want a string"},
		{"no session", "session/load", `{"cwd":"/","mcpServers":[]}`, "sessionId", "is missing"},
		{"a session of another kind", "session/set_mode", `{"sessionId":{},"modeId":"read-only"}`, "sessionId", "got an object, want a string"},
		{"a mode that is none", "session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"x"}`, id), "modeId", "must be one of"},
		{"a cursor of another kind", "session/list", `{"cursor":1}`, "cursor", "got a number, want a string"},
		{"a note of another kind", "session/list", `{"_meta":1}`, "_meta", "got a number, want an object"},
		{"no prompt", "session/prompt", fmt.Sprintf(`{"sessionId":%q}`, id), "prompt", "is missing"},
		{"a prompt of another kind", "session/prompt", blocks(`"x"`), "prompt", "got a string, want an array"},
		{"an empty prompt", "session/prompt", blocks(`[]`), "prompt", "is empty"},
		{"a blank prompt", "session/prompt", blocks(`[{"type":"text","text":" "},{"type":"text","text":"\n"}]`), "prompt", "is empty"},
		{"a block of another kind", "session/prompt", blocks(`[7]`), "prompt[0]", "got a number, want an object"},
		{"a block that is null", "session/prompt", blocks(`[{"type":"text","text":"x"},null]`), "prompt[1]", "got null, want an object"},
		{"an empty block", "session/prompt", blocks(`[{"type":"text","text":"x"},{}]`), "prompt[1].type", "is missing"},
		{"a type of another kind", "session/prompt", blocks(`[{"type":7}]`), "prompt[0].type", "got a number, want a string"},
		{"an unknown type", "session/prompt", blocks(`[{"type":"text","text":"x"},{"type":"video","data":"AAA"}]`), "prompt[1].type", `"video" is not taken; text, resource_link and resource are`},
		{"an unknown type that looks like text", "session/prompt", blocks(`[{"type":"video","text":"x"}]`), "prompt[0].type", "not taken"},
		{"an image", "session/prompt", blocks(`[{"type":"image","data":"aGk=","mimeType":"image/png"}]`), "prompt[0].type", `"image" is not taken`},
		{"no text", "session/prompt", blocks(`[{"type":"text"}]`), "prompt[0].text", "is missing"},
		{"text of another kind", "session/prompt", blocks(`[{"type":"text","text":1}]`), "prompt[0].text", "got a number, want a string"},
		{"a link to nothing", "session/prompt", blocks(`[{"type":"text","text":"x"},{"type":"resource_link"}]`), "prompt[1].name", "is missing"},
		{"a link without an address", "session/prompt", blocks(`[{"type":"resource_link","name":"x"}]`), "prompt[0].uri", "is missing"},
		{"a link with an empty address", "session/prompt", blocks(`[{"type":"resource_link","name":"x","uri":""}]`), "prompt[0].uri", "is empty"},
		{"an empty resource", "session/prompt", blocks(`[{"type":"text","text":"x"},{"type":"resource","resource":{}}]`), "prompt[1].resource.text", "is missing"},
		{"a resource without an address", "session/prompt", blocks(`[{"type":"resource","resource":{"text":"x"}}]`), "prompt[0].resource.uri", "is missing"},
		{"a resource with an empty address", "session/prompt", blocks(`[{"type":"resource","resource":{"text":"x","uri":""}}]`), "prompt[0].resource.uri", "is empty"},
		{"no resource", "session/prompt", blocks(`[{"type":"resource"}]`), "prompt[0].resource", "is missing"},
		{"bytes", "session/prompt", blocks(`[{"type":"resource","resource":{"uri":"x","blob":"aGk="}}]`), "prompt[0].resource.blob", "is not taken"},
		{"a name in other letters", "session/prompt", fmt.Sprintf(`{"sessionid":%q,"prompt":[]}`, id), "sessionId", "is missing"},
	} {
		s.send(request(9, c.method, c.params))
		m := s.expect("the refusal of "+c.name, func(m message) bool { return m.Error != nil })
		var data struct{ Path string }
		if m.Error.Data != nil {
			if err := json.Unmarshal(m.Error.Data, &data); err != nil {
				t.Error(err)
			}
		}
		if m.Error.Code != -32602 || data.Path != c.path || !strings.Contains(m.Error.Message, c.path+": ") || !strings.Contains(m.Error.Message, c.says) {
			t.Errorf("%s: %d %q at %q, want -32602 %q at %q", c.name, m.Error.Code, m.Error.Message, data.Path, c.says, c.path)
		}
		if strings.Contains(m.Error.Message, "Go ") || strings.Contains(m.Error.Message, "Request") {
			t.Errorf("%s: %s", c.name, m.Error.Message)
		}
	}
	s.send(request(10, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"more":1,"_meta":{"a":1},"prompt":[{"type":"text","text":"x","annotations":null},{"type":"resource_link","name":"","uri":"file:///a/b.txt"}]}`, id)))
	s.answer(10).stop(t, "end_turn")
	s.end()
	if log := s.log(id); !strings.Contains(log, "x[b.txt](file:///a/b.txt)") || strings.Count(log, `"type":"user/message"`) != 1 {
		t.Errorf("the log: %s", log)
	}
}

func TestAProtocolVersionOfAnotherKindIsRefusedAndInitializeMayBeSentAgain(t *testing.T) {
	s := newWorld(t, "responses: []").start()
	for _, c := range []struct{ version, says string }{
		{`"1"`, "got a string, want a number"}, {"1.5", "must be a whole number"}, {"1.0", "must be a whole number, written without a point"}, {"null", "got null, want a number"}, {"1e99", "must be a whole number"},
	} {
		s.send(request(9, "initialize", `{"protocolVersion":`+c.version+`}`))
		if m := s.expect("the refusal", func(m message) bool { return m.Error != nil }); m.Error.Code != -32602 || !strings.Contains(m.Error.Message, "protocolVersion: "+c.says) {
			t.Errorf("%s: %d %s", c.version, m.Error.Code, m.Error.Message)
		}
	}
	s.send(request(10, "initialize", `{"protocolVersion":1,"clientCapabilities":null}`))
	if m := s.answer(10); m.Error != nil {
		t.Errorf("1: %+v", m.Error)
	}
	s.end()
}
