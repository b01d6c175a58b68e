package model

import (
	"regexp"
	"strings"
	"sync"
)

// leaks are the beginnings of tool calls in the markup of models. A server that
// fails to read a call lets them through as text.
var leaks = []string{
	"<|tool_calls_begin|>", "<|tool_call_begin|>", "<|tool_sep|>", "<|dsml|", "<tool_call>", "<function_calls>",
	"<|tool_calls_section_begin|>", "<|tool_call|>", "<|python_tag|>",
}

// leaked are those that hold the name of the tool, without which they would be
// found in ordinary text.
var leaked = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<function=[A-Za-z_][\w.:-]*>|<invoke name="|<\|channel\|>\w+ to=functions\.|\[TOOL_CALLS\]\s*(\[\s*\{|[A-Za-z_][\w.-]*[\[{])`)
})

// LeaksCall tells whether a text holds the markup of a tool call. It was never
// run; an answer that ends so is probably unfinished.
func LeaksCall(text string) bool {
	if !strings.ContainsAny(text, "<[") {
		return false
	}
	if leaked().MatchString(text) {
		return true
	}
	text = strings.ToLower(strings.NewReplacer("｜", "|", "▁", "_").Replace(text))
	for _, l := range leaks {
		if strings.Contains(text, l) {
			return true
		}
	}
	return false
}
