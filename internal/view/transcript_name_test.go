package view

import (
	"strings"
	"testing"

	"deepseek/internal/session"
)

// A model may call a tool by a name as long as a file; no line of a transcript is.
func TestTheNameOfACallIsCut(t *testing.T) {
	l := newLogged(t)
	l.add(session.TypeTurnStart, session.TurnStart{Turn: 1})
	l.add(session.TypeToolCall, session.ToolCall{Turn: 1, Step: 1, CallID: "a", Name: strings.Repeat("n", 60_000), Arguments: "{}"})
	b := NewBuilder(nil)
	for _, e := range l.events {
		if err := b.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	found := false
	for _, i := range b.calls {
		found = true
		if len(i.Name) > 210 || !strings.HasPrefix(i.Name, "nnn") {
			t.Errorf("the name has %d bytes", len(i.Name))
		}
	}
	if !found {
		t.Error("no call in the transcript")
	}
}
