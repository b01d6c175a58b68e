package acp

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// What was streamed of an attempt that broke off is followed by words that say so,
// once, whatever the log goes on with.
func TestWhatIsInNoMessageIsSaidNotToCount(t *testing.T) {
	const broke = "The answer broke off"
	for _, c := range []struct {
		name, kind, then string
		data             any
		want             int
	}{
		{"it is asked for again", session.BlockText, session.TypeLLMRetry, session.Retry{}, 1},
		{"the turn ends", session.BlockText, session.TypeTurnEnd, session.TurnEnd{}, 1},
		{"the turn ends in the middle of a thought", session.BlockReasoning, session.TypeTurnEnd, session.TurnEnd{}, 1},
		{"the history is too long", session.BlockText, session.TypeCompactionStart, map[string]int{}, 1},
		{"it is a message", session.BlockText, session.TypeAssistantMessage, session.AssistantMessage{}, 0},
		{"nothing was streamed", "", session.TypeTurnEnd, session.TurnEnd{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told strings.Builder
			tell := newTeller("/w", func(u sdk.SessionUpdate) error {
				if m := u.AgentMessageChunk; m != nil {
					told.WriteString(m.Content.Text.Text)
				}
				return nil
			})
			if c.kind != "" {
				if err := tell.delta(remote.Delta{Kind: c.kind, Text: "PART"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, typ := range []string{c.then, session.TypeTurnEnd} {
				data := c.data
				if typ != c.then {
					data = session.TurnEnd{}
				}
				e, err := session.NewEvent(typ, 1, data)
				if err != nil {
					t.Fatal(err)
				}
				if err := tell.event(e, false); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Count(told.String(), broke); got != c.want {
				t.Errorf("said %d times, want %d: %q", got, c.want, told.String())
			}
		})
	}
}
