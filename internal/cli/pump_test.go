package cli

import (
	"fmt"
	"strings"
	"testing"

	"deepseek/internal/engine"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// What was kept back as the possible beginning of the key comes before the event
// that ends the text, and what follows that is looked at anew.
func TestAnEventEndsTheTextThatMayBeTheKey(t *testing.T) {
	for _, key := range []string{"", "sk-0123456789"} {
		d := newDeltas(redact.New(key))
		var got strings.Builder
		for _, it := range []engine.FeedItem{
			{Delta: &engine.Delta{Kind: session.BlockText, Text: "a sk-01"}},
			{Lines: []engine.Line{{Type: session.TypeLLMRetry}}},
			{Delta: &engine.Delta{Kind: session.BlockText, Text: "23456789 b"}},
			{Mark: true},
		} {
			for _, shown := range d.take(it) {
				fmt.Fprintf(&got, "%s:%s|", shown.Kind, shown.Text)
			}
			for _, l := range it.Lines {
				fmt.Fprintf(&got, "%s|", l.Type)
			}
		}
		if s := strings.ReplaceAll(got.String(), "|text:sk-01", "sk-01"); s != "text:a sk-01|llm/retry|text:23456789 b|" {
			t.Errorf("key %q: %s", key, got.String())
		}
	}
}
