package model

import "testing"

func TestLeaksCall(t *testing.T) {
	for text, want := range map[string]bool{
		"":                       false,
		"a < b, and <b>bold</b>": false,
		"I call the tool now.":   false,
		"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write": true,
		"let me write it\n<|tool_call_begin|>write":                        true,
		"<｜DSML｜function_calls>":                                           true,
		"<tool_call>\n{\"name\": \"write\"}":                               true,
		"<function=read><parameter=file_path>a</parameter></function>":     true,
		"so:\n<function=mcp__a__b>\n{}":                                    true,
		`<invoke name="read"><parameter name="file_path">a`:                true,
		`[TOOL_CALLS] [{"name": "read", "arguments": {}}]`:                 true,
		`[TOOL_CALLS]read{"file_path":"a"}`:                                true,
		"<|channel|>commentary to=functions.read <|message|>{}":            true,
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0":  true,
		"the attribute <function=> is empty, x<function=y":                 false,
		"the token [TOOL_CALLS] begins a call":                             false,
		"message[tool_calls][0]":                                           false,
	} {
		if got := LeaksCall(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
