package session

import (
	"testing"

	"deepseek/internal/redact"
)

// TestNoEventTypeIsASecret: a key that is set to any word must not be taken out of
// the types of a log's events.
func TestNoEventTypeIsASecret(t *testing.T) {
	for typ := range known {
		if redact.New(typ).Replaces() {
			t.Errorf("a key %q would be replaced", typ)
		}
	}
}
