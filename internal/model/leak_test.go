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
	} {
		if got := LeaksCall(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
