package redact_test

import (
	"testing"

	"deepseek/internal/redact"
)

// TestWhatLogsAreWrittenWithIsNoSecret: a key that is set to any word must not take
// apart what a log is made of.
func TestWhatLogsAreWrittenWithIsNoSecret(t *testing.T) {
	words := []string{"deepseek", "completed", "user-question-reply", "workspace-write", "next-turn", "toolCallId", "question", "reasoning"}
	for _, w := range words {
		if k := redact.New(w); k.Replaces() || k.String(`{"type":"`+w+`"}`) != `{"type":"`+w+`"}` || !k.In(w) {
			t.Errorf("%q is taken for a secret", w)
		}
	}
	for _, w := range []string{"sk-12345678", "any-key-at-all", "deepseek-key", "12345678", "none-needed"} {
		if !redact.New(w).Replaces() {
			t.Errorf("%q is not taken for a secret", w)
		}
	}
}
