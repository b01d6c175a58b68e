package model

import "strings"

// leaks are the beginnings of tool calls in the markup of models. A server that
// fails to read a call lets them through as text.
var leaks = []string{
	"<|tool_calls_begin|>", "<|tool_call_begin|>", "<|tool_sep|>", "<|dsml|", "<tool_call>", "<function_calls>",
}

// LeaksCall tells whether a text holds the markup of a tool call. It was never
// run; an answer that ends so is probably unfinished.
func LeaksCall(text string) bool {
	if !strings.Contains(text, "<") {
		return false
	}
	text = strings.ToLower(strings.NewReplacer("｜", "|", "▁", "_").Replace(text))
	for _, l := range leaks {
		if strings.Contains(text, l) {
			return true
		}
	}
	return false
}
