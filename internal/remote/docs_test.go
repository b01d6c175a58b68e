package remote

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestTheDocumentedMessagesAreThoseOfTheProtocol holds the examples of the
// documentation against the vocabulary: each method and notification has one,
// and all of them are understood.
func TestTheDocumentedMessagesAreThoseOfTheProtocol(t *testing.T) {
	data, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for m := range stdioMethods {
		missing[m] = true
	}
	for _, n := range []string{NoteEvent, NoteStatus, NoteDelta, NoteRequest, NoteSettled, NoteWait, NoteWaitEnded, NoteSubagentStarted, NoteSubagentFinished} {
		missing[n] = true
	}
	asked := map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		text, request := strings.CutPrefix(line, "> ")
		if !strings.HasPrefix(text, `{"jsonrpc"`) {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Errorf("%v: %s", err, text)
			continue
		}
		delete(missing, m.Method)
		switch {
		case request:
			asked[string(m.ID)] = true
		case m.Method == "" && string(m.ID) != "null" && !asked[string(m.ID)]:
			t.Errorf("an answer to nothing: %s", text)
		case m.Method != "":
			if _, known, err := notice(m.Method, m.Params); err != nil || !known && m.Method != NoteWait && m.Method != NoteWaitEnded && m.Method != NoteSubagentStarted && m.Method != NoteSubagentFinished {
				t.Errorf("%s is not understood: %v", text, err)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("without an example: %v", missing)
	}
}
