package deepseek

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

var history = []session.Message{
	{Role: session.RoleUser, Text: "do <it> & \u2028 go"},
	{Role: session.RoleAssistant, Reasoning: "hm", Calls: []session.Call{{ID: "c1", Name: "read", Arguments: `{"b":1, "a":2}`}, {ID: "c2", Name: "bad name!", Arguments: `{"a":`}}},
	{Role: session.RoleTool, CallID: "c1", Text: "out"},
	{Role: session.RoleTool, CallID: "c2"},
	{Role: session.RoleAssistant, Text: "done"},
	{Role: session.RoleUser, Text: "more"},
}

func encoded(t *testing.T, r model.Request) string {
	t.Helper()
	b, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEncode(t *testing.T) {
	zero := 0.0
	got := encoded(t, model.Request{
		Config: session.RequestConfig{Model: "m", ReasoningEffort: "high", MaxTokens: 7, Temperature: &zero},
		System: "sys", Messages: history,
		Tools: []session.ToolSpec{{Name: "read", Description: "reads <files>", Parameters: json.RawMessage(`{"type": "object"}`)}, {Name: "none"}},
	})
	want := `{"model":"m","messages":[{"role":"system","content":"sys"},` +
		`{"role":"user","content":"do <it> & \u2028 go"},` +
		`{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"b\":1, \"a\":2}"}},` +
		`{"id":"c2","type":"function","function":{"name":"bad_name_","arguments":"{\"_invalid_arguments\":\"{\\\"a\\\":\"}"}}]},` +
		`{"role":"tool","content":"out","tool_call_id":"c1"},` +
		`{"role":"tool","content":"(no output)","tool_call_id":"c2"},` +
		`{"role":"assistant","content":"done"},{"role":"user","content":"more"}],` +
		`"tools":[{"type":"function","function":{"name":"read","description":"reads <files>","parameters":{"type":"object"}}},` +
		`{"type":"function","function":{"name":"none","description":"","parameters":{"type":"object","properties":{}}}}],` +
		`"stream":true,"stream_options":{"include_usage":true},"thinking":{"type":"enabled"},"reasoning_effort":"high","max_tokens":7,"temperature":0}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEncodeEffort(t *testing.T) {
	for effort, want := range map[string]string{
		"":    `"stream_options":{"include_usage":true}}`,
		"off": `"thinking":{"type":"disabled"}}`,
		"max": `"thinking":{"type":"enabled"},"reasoning_effort":"max"}`,
	} {
		got := encoded(t, model.Request{Config: session.RequestConfig{Model: "m", ReasoningEffort: effort}})
		if !strings.HasSuffix(got, want) {
			t.Errorf("effort %q: %s does not end with %s", effort, got, want)
		}
	}
}

// The server's cache lives on it: what was sent stays, byte for byte.
func TestMessagesOfNextRequestBeginWithThoseOfTheLast(t *testing.T) {
	var before string
	for n := range history {
		got := encoded(t, model.Request{Config: session.RequestConfig{Model: "m"}, System: "s", Messages: history[:n+1]})
		if before != "" && !strings.HasPrefix(got, before) {
			t.Errorf("with %d messages: %s\ndoes not begin with\n%s", n+1, got, before)
		}
		before, _, _ = strings.Cut(got, `],"stream"`)
	}
}

func TestArgumentsAreAlwaysReplayedAsAnObject(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1}`:    `{"a":1}`,
		" {\"a\":1}": " {\"a\":1}",
		``:           `{}`,
		`null`:       `{"_invalid_arguments":"null"}`,
		`[1]`:        `{"_invalid_arguments":"[1]"}`,
		`{"a":1}}`:   `{"_invalid_arguments":"{\"a\":1}}"}`,
		"\xff<":      `{"_invalid_arguments":"\ufffd<"}`,
	} {
		got := sentArguments(raw)
		if got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q is replayed as %s, want %s", raw, got, want)
		}
	}
}

func TestEncodeRefusesABrokenSchema(t *testing.T) {
	_, err := encode(model.Request{Tools: []session.ToolSpec{{Name: "x", Parameters: json.RawMessage(`{`)}}})
	if err == nil {
		t.Error("no error")
	}
}

func TestAdaptations(t *testing.T) {
	msgs := []session.Message{{Role: session.RoleAssistant, Text: "a", Reasoning: "r"}, {Role: session.RoleAssistant, Text: "b"}}
	for _, tt := range []struct {
		have []string
		want []string
	}{
		{nil, []string{`"content":"a","reasoning_content":"r"}`, `"content":"b"}`}},
		{[]string{NoReasoning}, []string{`"content":"a"}`, `"content":"b"}`}},
		{[]string{ReasoningRequired}, []string{`"reasoning_content":"r"}`, `"content":"b","reasoning_content":""}`}},
		{[]string{NoReasoning, ReasoningRequired}, []string{`"reasoning_content":"r"}`, `"reasoning_content":""}`}},
	} {
		b := encoded(t, model.Request{Messages: msgs, Adaptations: tt.have})
		for _, w := range tt.want {
			if !bytes.Contains([]byte(b), []byte(w)) {
				t.Errorf("%v: %s lacks %s", tt.have, b, w)
			}
		}
	}
}

func TestAdapt(t *testing.T) {
	refusal := func(status int, msg string) error {
		return &model.Error{Code: model.CodeInvalidRequest, Status: status, Message: msg}
	}
	for _, tt := range []struct {
		name string
		err  error
		have []string
		want string
	}{
		{"passed back", refusal(400, "The `reasoning_content` in the thinking mode must be passed back to the API."), nil, ReasoningRequired},
		{"missing", refusal(400, "Missing `reasoning_content` field in the assistant message at message index 2"), nil, ReasoningRequired},
		{"please remove", refusal(400, "The reasoning content is for display and will not be included in the context. Please remove the reasoning_content from your message"), nil, NoReasoning},
		{"extra inputs", refusal(422, "messages.1.reasoning_content: Extra inputs are not permitted"), nil, NoReasoning},
		{"unsupported", refusal(400, "property 'reasoning_content' is unsupported"), nil, NoReasoning},
		{"had already", refusal(400, "property 'reasoning_content' is unsupported"), []string{NoReasoning}, ""},
		{"something else", refusal(400, "max_tokens is unsupported"), nil, ""},
		{"another status", refusal(500, "reasoning_content is unsupported"), nil, ""},
		{"no refusal", nil, nil, ""},
	} {
		got, ok := Adapt(tt.err, tt.have)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, ok, tt.want)
		}
	}
}

// A name that a server refuses would be refused in every request from then on.
func TestNamesOfPastCallsFitTheStrictestServer(t *testing.T) {
	good := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	long := strings.Repeat("n", 64)
	seen := map[string]string{}
	for _, name := range []string{
		"", "read", "bad name!", long, long + "n", long + "m", "mcp__server__" + long, strings.Repeat("n", 60_000), strings.Repeat("中", 100), strings.Repeat("é", 64),
	} {
		got := sentName(name)
		if !good.MatchString(got) || got != sentName(name) {
			t.Errorf("%.80q is sent as %q", name, got)
		}
		if len(name) > 64 {
			if other, twice := seen[got]; twice {
				t.Errorf("%.80q and %.80q are sent as %q", name, other, got)
			}
			seen[got] = name
		}
	}
	if got := sentName(long); got != long {
		t.Errorf("a name of 64 bytes is sent as %q", got)
	}
	id := strings.Repeat("i", 128)
	body := encoded(t, model.Request{Messages: []session.Message{
		{Role: session.RoleAssistant, Calls: []session.Call{call(id, "read", "{}")}}, {Role: session.RoleTool, CallID: id, Text: "x"},
	}})
	if strings.Count(body, id) != 2 {
		t.Errorf("call and result do not have the id that the log has: %s", body)
	}
}
