package cli

import (
	"fmt"
	"strings"
	"testing"

	"deepseek/internal/engine"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// The mark comes after the text that was kept back as the possible beginning of
// the key, and what follows it is looked at anew.
func TestAMarkPassesTheRedaction(t *testing.T) {
	for _, key := range []string{"", "sk-0123456789"} {
		d := newDeltas(redact.New(key))
		var got strings.Builder
		for _, next := range []engine.Delta{
			{Kind: session.BlockText, Text: "a sk-01"}, {Kind: session.StreamDiscarded}, {Kind: session.BlockText, Text: "23456789 b"},
		} {
			for _, shown := range d.take(engine.FeedItem{Delta: &next}) {
				fmt.Fprintf(&got, "%s:%s|", shown.Kind, shown.Text)
			}
		}
		for _, shown := range d.take(engine.FeedItem{Mark: true}) {
			fmt.Fprintf(&got, "%s:%s|", shown.Kind, shown.Text)
		}
		if s := strings.ReplaceAll(got.String(), "|text:sk-01", "sk-01"); s != "text:a sk-01|discarded:|text:23456789 b|" {
			t.Errorf("key %q: %s", key, got.String())
		}
	}
}
