package session

import (
	"encoding/json"
	"reflect"
	"testing"
)

var quickTexts = []string{
	`{"turn":1,"step":2}`,
	`{"turn":1,"step":02}`,
	`{"turn":1,"step":2,"callId":"c1","name":"bash","arguments":"{\"command\":\"ls\\n\"}"}`,
	`{"turn":1,"step":2,"callId":"c1","name":"bash","arguments":"\u0041"}`,
	`{"turn":1,"step":2,"message":{"id":"r","role":"tool","toolCallId":"c1","content":"äöü \\\" \/ \b\f\n\r\t","isError":false}}`,
	`{"turn":1,"step":2,"message":{"id":"r","role":"tool","toolCallId":"c1","content":"DENIED: no","isError":true},"error":{"name":"bash","code":"DENIED"},"meta":{"observed":[{"path":"/a","hash":"b"}],"exitCode":0}}`,
	`{"turn":1,"step":2,"message":{"id":"r","role":"tool","toolCallId":"c1","content":"x","isError":false},"turn":7,"message":{"id":"s"}}`,
	`{"turn":1,"step":2,"message":{"id":"a","role":"assistant","content":[{"type":"reasoning","text":"so"},{"type":"text","text":"see"},{"type":"tool-call","id":"c1","name":"bash","arguments":"{}"}],"source":{"kind":"model","provider":"p","model":"m"}},"usage":{"inputTokens":1,"cacheReadTokens":2,"outputTokens":3},"interrupted":true}`,
	`{"turn":1,"step":2,"message":{"id":"a","role":"assistant","content":[],"source":{"kind":"model"}}}`,
	`{"turn":1,"step":2,"message":{"id":"a","role":"assistant","content":[{"type":"image","text":"see"}],"source":{"kind":"model"}}}`,
	"{\"turn\":1,\"step\":2,\"callId\":\"c1\",\"name\":\"\xff\",\"arguments\":\"\"}",
	`{"turn":1,"step":2,"callId":"c1","name":"\`,
	`{"turn":1,"step":2,"callId":"c1","name":"\\"`,
}

// What quick takes, encoding/json takes for the same.
func FuzzQuick(f *testing.F) {
	for _, t := range quickTexts {
		f.Add([]byte(t))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []func() any{
			func() any { return new(ToolResult) }, func() any { return new(AssistantMessage) },
			func() any { return new(ToolCall) }, func() any { return new(StepMark) },
		} {
			fast, full := into(), into()
			if !quick(data, fast) {
				if !reflect.DeepEqual(fast, full) {
					t.Fatalf("%s: refused, and yet changed: %+v", data, fast)
				}
				continue
			}
			if err := json.Unmarshal(data, full); err != nil {
				t.Fatalf("%s: quick took what is no payload: %v", data, err)
			}
			if !reflect.DeepEqual(fast, full) {
				t.Fatalf("%s:\nquick %+v\njson  %+v", data, fast, full)
			}
		}
	})
}

// What the log's own writer writes is what quick is for.
func TestQuickTakesWhatIsWritten(t *testing.T) {
	words := "a \"word\" \\ <&> of\r\n\ttext, äöü 世界"
	code := 1
	for _, v := range []any{
		&StepMark{Turn: 3, Step: 14},
		&ToolCall{Turn: 1, Step: 2, CallID: "c", Name: "bash", Arguments: `{"command":"a\nb"}`},
		&ToolResult{Turn: 1, Step: 2, Message: ToolMessage{ID: "r", Role: "tool", ToolCallID: "c", Content: words}},
		&ToolResult{Turn: 1, Step: 2, Message: ToolMessage{ID: "r", Role: "tool", ToolCallID: "c", Content: words, IsError: true}, Error: &ToolError{"bash", "X"}, Meta: &ToolMeta{ExitCode: &code}},
		&AssistantMessage{Turn: 1, Step: 2, Message: ModelMessage{ID: "a", Role: "assistant", Content: []Block{{Type: BlockText, Text: words}, {Type: BlockToolCall, ID: "c", Name: "bash", Arguments: `{"a":"b"}`}}, Source: Source{Kind: SourceModel, Provider: "p", Model: "m"}}, Usage: &Usage{InputTokens: 1}},
	} {
		raw, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if !quick(raw, got) || !reflect.DeepEqual(got, v) {
			t.Errorf("%s\nread as %+v", raw, got)
		}
	}
}

// FuzzQuickTimed holds the quick look at a header to the full one.
func FuzzQuickTimed(f *testing.F) {
	for _, t := range []string{
		`{"header":{"config":{"provider":"p","model":"m"},"system":"a \"]}","tools":[{"name":"x","description":"","parameters":{"type":"object"}},{"name":"ask_user_question","description":"d","parameters":{"properties":{"timeout":{}}}}]},"reason":"initial"}`,
		`{"header":{"config":{},"tools":[{"name":"ask_user_question","description":"d","parameters":{"properties":{}}}]},"reason":"change"}`,
		`{"header":{"config":{},"tools":[]},"reason":"change","header":{"tools":[{"name":"ask_user_question","parameters":{"properties":{"timeout":1}}}]}}`,
		`{"header":{"config":{},"system":"s"},"reason":"change"}`,
	} {
		f.Add([]byte(t))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		timed, ok := quickTimed(data)
		if !ok || !json.Valid(data) {
			return
		}
		var v struct {
			Header struct {
				Tools []ToolSpec `json:"tools"`
			} `json:"header"`
		}
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: taken, and yet: %v", data, err)
		}
		want := false
		for _, tool := range v.Header.Tools {
			var schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			if tool.Name == AskTool && json.Unmarshal(tool.Parameters, &schema) == nil {
				_, want = schema.Properties["timeout"]
			}
		}
		if timed != want {
			t.Errorf("%s: timed %v, full %v", data, timed, want)
		}
	})
}
