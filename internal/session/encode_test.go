package session

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What Marshal writes of an answer is what encoding/json would write.
func FuzzMarshalAssistantMessage(f *testing.F) {
	f.Add(1, 2, "m", "hel\"lo \u2028 <&>\xff", "thinking", "c1", `{"a":1}`, byte(0))
	f.Add(0, -1, "", "", "", "", "", byte(255))
	f.Fuzz(func(t *testing.T, turn, step int, id, text, reasoning, call, arguments string, bits byte) {
		m := AssistantMessage{Turn: turn, Step: step, Message: ModelMessage{ID: id, Role: string(RoleAssistant), Source: Source{Kind: SourceModel, Model: id, Round: step}}}
		for i, b := range []Block{
			{Type: BlockReasoning, Text: reasoning},
			{Type: BlockText, Text: text},
			{Type: BlockToolCall, ID: call, Name: id, Arguments: arguments},
		} {
			if bits&(1<<i) != 0 {
				m.Message.Content = append(m.Message.Content, b)
			}
		}
		if bits&8 != 0 {
			cost := float64(turn) / 3
			m.Usage = &Usage{InputTokens: int64(turn), ReasoningTokens: int64(step), CostUSD: &cost}
		}
		m.Interrupted = bits&16 != 0
		if bits&32 != 0 && m.Message.Content == nil {
			m.Message.Content = []Block{}
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
		got, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(got, '\n'), want.Bytes()) {
			t.Errorf("wrote\n%s\nwant\n%s", got, want.Bytes())
		}
	})
}
