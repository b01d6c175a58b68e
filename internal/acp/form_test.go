package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const forms = `{"elicitation":{"form":{}}}`

// formBatch is a batch that buttons cannot answer: of several choices, free
// text, and a single choice.
const formBatch = `
responses:
  - tool_calls:
      - id: q1
        name: ask_user_question
        arguments:
          questions:
            - {id: db, header: Stores, question: "Which stores?", multi_select: true, options: [{label: pg, description: the big one}, {label: lite}]}
            - {id: name, question: "Which name?"}
            - {id: port, question: "Which port?", options: [{label: "8080"}, {label: "9090"}]}
  - text: going on
  - text: taken up
`

func TestWhatButtonsCannotShowIsAFormWhereTheClientOffersIt(t *testing.T) {
	for _, mode := range [][]string{{"--mode", "legacy"}, timed(100), timed(-1)} {
		t.Run(strings.Join(mode, " "), func(t *testing.T) {
			s := newWorld(t, formBatch).start(mode...)
			id := s.promptedWith(forms, `[]`)
			s.update(`"toolCallId":"q1"`) // before the client is asked about it
			f := s.formed()
			var p struct {
				SessionID, ToolCallID, Mode, Message string
				RequestedSchema                      struct {
					Type       string
					Properties map[string]json.RawMessage
					Required   []string
				}
			}
			if err := json.Unmarshal(f.Params, &p); err != nil {
				t.Fatal(err)
			}
			if p.SessionID != id || p.ToolCallID != "q1" || p.Mode != "form" || !strings.HasPrefix(p.Message, "3 questions") || p.RequestedSchema.Type != "object" || p.RequestedSchema.Required != nil {
				t.Errorf("the form: %s", f.Params)
			}
			if left := strings.Contains(p.Message, "Left pending in"); left != (mode[len(mode)-1] == "100") {
				t.Errorf("the message: %q", p.Message)
			}
			for name, want := range map[string]string{
				"q001":       `{"description":"Which stores?","items":{"anyOf":[{"const":"pg","title":"pg: the big one"},{"const":"lite","title":"lite"}]},"title":"Stores","type":"array"}`,
				"q001_other": `{"title":"And in your own words","type":"string"}`,
				"q002":       `{"title":"Which name?","type":"string"}`,
				"q003":       `{"oneOf":[{"const":"8080","title":"8080"},{"const":"9090","title":"9090"}],"title":"Which port?","type":"string"}`,
				"q003_other": `{"title":"Or in your own words","type":"string"}`,
			} {
				if got := string(p.RequestedSchema.Properties[name]); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if n := len(p.RequestedSchema.Properties); n != 5 {
				t.Errorf("%d fields", n)
			}
			s.reply(f, `{"action":"accept","content":{"q001":["lite","pg"],"q001_other":" and redis ","q002":"ada","q003":"8080","q003_other":""}}`)
			s.answer(3).stop(t, "end_turn")
			s.end()
			if want := `{\"answers\":[{\"id\":\"db\",\"selected\":[\"lite\",\"pg\"],\"custom\":\"and redis\"},{\"id\":\"name\",\"selected\":[],\"custom\":\"ada\"},{\"id\":\"port\",\"selected\":[\"8080\"]}]}`; !strings.Contains(s.log(id), want) {
				t.Error("the answers are not in the log")
			}
		})
	}
}

func TestWhatAFormSays(t *testing.T) {
	const skipped = `[{\"id\":\"db\",\"selected\":[]},{\"id\":\"name\",\"selected\":[]},{\"id\":\"port\",\"selected\":[]}]`
	for _, c := range []struct{ name, result, answers string }{
		{"nothing", `{"action":"accept","content":{}}`, skipped},
		{"empty fields", `{"action":"accept","content":{"q001":[],"q002":" ","q003":"","q003_other":null}}`, skipped},
		{"a refusal", `{"action":"decline"}`, skipped},
		{
			"words beside a single choice, which a form may make by itself", `{"action":"accept","content":{"q003":"8080","q003_other":"any free one"}}`,
			`[{\"id\":\"db\",\"selected\":[]},{\"id\":\"name\",\"selected\":[]},{\"id\":\"port\",\"selected\":[],\"custom\":\"any free one\"}]`,
		},
		{"a label that is none", `{"action":"accept","content":{"q003":"80"}}`, ""},
		{"a label twice", `{"action":"accept","content":{"q001":["pg","pg"]}}`, ""},
		{"two of a single choice", `{"action":"accept","content":{"q003":["8080","9090"]}}`, ""},
		{"a number", `{"action":"accept","content":{"q002":7}}`, ""},
		{"a list of others", `{"action":"accept","content":{"q001":["pg",{}]}}`, ""},
		{"fields that are none", `{"action":"accept","content":{"db":["pg"],"name":"ada"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, formBatch)
			s := w.start(timed(-1)...) // nobody else ends it
			id := s.promptedWith(forms, `[]`)
			s.reply(s.formed(), c.result)
			if c.answers == "" {
				s.update("The answer cannot be used: ")
				s.send(cancel(id))
				s.answer(3).stop(t, "cancelled")
			} else {
				s.answer(3).stop(t, "end_turn")
			}
			s.end()
			if has := strings.Contains(s.log(id), `{\"answers\":[{\"id\":\"db\"`); has != (c.answers != "") || !strings.Contains(s.log(id), c.answers) {
				t.Errorf("the log has answers: %v", has)
			}
		})
	}
}

func TestAFormThatIsClosedEndsAQuestionThatTimeDoesNot(t *testing.T) {
	for _, mode := range [][]string{{"--mode", "legacy"}, timed(-1)} {
		s := newWorld(t, formBatch).start(mode...)
		id := s.promptedWith(forms, `[]`)
		s.reply(s.formed(), `{"action":"cancel"}`)
		s.answer(3).stop(t, "end_turn")
		s.end()
		if !strings.Contains(s.log(id), "ASK_CANCELLED") {
			t.Errorf("%v: the question was not closed", mode)
		}
	}
}

func TestAFormThatIsClosedLeavesATimedQuestionToTheCommand(t *testing.T) {
	s := newWorld(t, formBatch).start(timed(600)...)
	id := s.promptedWith(forms, `[]`)
	s.reply(s.formed(), `{"action":"cancel"}`)
	s.update("It stays open; answer it in a terminal:")
	s.send(cancel(id))
	s.answer(3).stop(t, "cancelled")
	s.end()
}

func TestAFormThatExpiresIsCancelledAndWhatStillArrivesIsALateAnswer(t *testing.T) {
	t.Parallel()
	s := newWorld(t, formBatch).start(timed(soon)...)
	s.promptedWith(forms, `[]`)
	f := s.formed()
	c := s.expect("the end of the form", func(m message) bool { return m.Method == "$/cancel_request" })
	if want := fmt.Sprintf(`{"requestId":%s}`, f.ID); string(c.Params) != want {
		t.Errorf("cancelled: %s, want %s", c.Params, want)
	}
	s.answer(3).stop(t, "end_turn")
	s.reply(f, `{"action":"accept","content":{"q002":"ada"}}`)
	s.update("Which name?\\n→ ada")
	s.update("taken up")
	s.end()
}

// A client may close a form that was cancelled in any of these ways, with nobody there.
func TestAFormThatExpiresAndIsGivenUpStaysPending(t *testing.T) {
	for name, end := range map[string]string{
		"an error":     `"error":{"code":-32800,"message":"cancelled"}`,
		"declined":     `"result":{"action":"decline"}`,
		"cancelled":    `"result":{"action":"cancel"}`,
		"not a form":   `"result":{}`,
		"wrong fields": `"result":{"action":"accept","content":{"x":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, formBatch)
			s := w.start(timed(soon)...)
			id := s.promptedWith(forms, `[]`)
			f := s.formed()
			s.answer(3).stop(t, "end_turn")
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, end))
			if name == "wrong fields" {
				s.update("The answer cannot be used: ")
			}
			s.end()
			if out := w.questions(id); !strings.Contains(out, `"state":"continued","queued":false`) {
				t.Errorf("questions: %s", out)
			}
		})
	}
}

func TestWhatButtonsCanShowIsNoForm(t *testing.T) {
	for name, c := range map[string]struct{ script, option string }{
		"a single choice": {question, "8080"},
		"an approval":     {writesOutside, "reject"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t, c.script).start()
			s.promptedWith(forms, `[]`)
			s.choose(s.asks(), c.option)
			s.answer(3).stop(t, "end_turn")
			s.end()
		})
	}
}

func TestDisconnectWithAnOpenFormLeavesTheQuestionAnswerable(t *testing.T) {
	w := newWorld(t, formBatch)
	s := w.start(timed(600)...)
	id := s.promptedWith(forms, `[]`)
	s.formed()
	s.hangUp()
	if out := w.questions(id); !strings.Contains(out, `"state":"continued"`) {
		t.Errorf("questions: %s", out)
	}
}
