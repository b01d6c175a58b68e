package script

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

var allTools = []session.ToolSpec{{Name: "glob"}, {Name: "read"}, {Name: "bash"}, {Name: "write"}, {Name: "ask_user_question"}}

// drive lets the demo work on a history, with results looked up by tool, until
// it stops. It returns the history and the closing text.
func drive(t *testing.T, history []session.Message, results map[string]string, tools []session.ToolSpec) ([]session.Message, string) {
	t.Helper()
	for range 10 {
		var streamed strings.Builder
		res, err := Demo().Generate(t.Context(), model.Request{Messages: history, Tools: tools}, func(d model.Delta) { streamed.WriteString(d.Text) })
		if err != nil {
			t.Fatal(err)
		}
		if streamed.String() != res.Text {
			t.Errorf("streamed %q, said %q", streamed.String(), res.Text)
		}
		history = append(history, session.Message{Role: session.RoleAssistant, Text: res.Text, Calls: res.Calls})
		if res.Finish == model.FinishStop {
			return history, res.Text
		}
		for _, c := range res.Calls {
			if c.Name == "bash" || c.Name == "write" || !json.Valid([]byte(c.Arguments)) {
				t.Errorf("call %+v", c)
			}
			history = append(history, session.Message{Role: session.RoleTool, CallID: c.ID, Text: results[c.Name]})
		}
	}
	t.Fatal("the demo does not stop")
	return nil, ""
}

func user(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }

func callsOf(history []session.Message) string {
	var out []string
	for _, m := range history {
		for _, c := range m.Calls {
			out = append(out, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments))
		}
	}
	return strings.Join(out, "\n")
}

const askedArguments = `{"questions":[{"id":"demo","question":"How long should the summary be?","header":"Summary","options":[{"label":"short"},{"label":"long"}]}]}`

func TestDemo(t *testing.T) {
	const listing = "a.txt\nb.txt\nREADME.md\n"
	for _, tt := range []struct {
		name    string
		results map[string]string
		tools   []session.ToolSpec
		calls   string
		says    []string
	}{
		{
			"answered",
			map[string]string{"glob": listing, "ask_user_question": `{"answers":[{"id":"demo","selected":["short"]}]}`},
			allTools,
			"demo_1 glob {\"pattern\":\"*\"}\ndemo_2 read {\"file_path\":\"README.md\"}\ndemo_3 ask_user_question " + askedArguments,
			[]string{"README.md", `"short"`},
		},
		{"own words", map[string]string{"glob": listing, "ask_user_question": `{"answers":[{"id":"demo","selected":[],"custom":"medium"}]}`}, allTools, "", []string{`"medium"`}},
		{"skipped", map[string]string{"glob": listing, "ask_user_question": `{"answers":[{"id":"demo","selected":[]}]}`}, allTools, "", []string{"skip"}},
		{"pending", map[string]string{"glob": listing, "ask_user_question": `{"pending":true,"callId":"demo_3","message":"m"}`}, allTools, "", []string{"left pending"}},
		{"nobody", map[string]string{"glob": listing, "ask_user_question": "NO_PROVIDER: nobody can be asked"}, allTools, "", []string{"nobody could be asked"}},
		{"another error", map[string]string{"glob": listing, "ask_user_question": "ASK_ABORTED: the run was cancelled"}, allTools, "", []string{"ASK_ABORTED"}},
		{
			"no README",
			map[string]string{"glob": "src/\nb.txt\nc.txt"},
			allTools,
			"demo_1 glob {\"pattern\":\"*\"}\ndemo_2 read {\"file_path\":\"b.txt\"}\ndemo_3 ask_user_question " + askedArguments,
			[]string{"b.txt"},
		},
		{
			"no files",
			map[string]string{"glob": "No files match."},
			allTools,
			"demo_1 glob {\"pattern\":\"*\"}\ndemo_2 ask_user_question " + askedArguments,
			[]string{"no file"},
		},
		{
			"glob fails",
			map[string]string{"glob": "FS_DENIED: not here"},
			allTools,
			"demo_1 glob {\"pattern\":\"*\"}\ndemo_2 ask_user_question " + askedArguments,
			[]string{"no file"},
		},
		{"no tools at all", nil, nil, "none", []string{"no file", "no question"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			history, said := drive(t, []session.Message{user("AGENTS.md says …"), user("do it")}, tt.results, tt.tools)
			if got := callsOf(history); tt.calls != "" && got != strings.TrimPrefix(tt.calls, "none") {
				t.Errorf("calls\n%s\nwant\n%s", got, tt.calls)
			}
			if !strings.HasPrefix(said, "This is deepseek's built-in demo script, no model") {
				t.Errorf("said %q", said)
			}
			for _, w := range tt.says {
				if !strings.Contains(said, w) {
					t.Errorf("said %q, without %q", said, w)
				}
			}
		})
	}
}

func TestDemoAnswersALateReplyWithOneText(t *testing.T) {
	results := map[string]string{"glob": "a.txt", "ask_user_question": `{"pending":true,"callId":"demo_3"}`}
	history, _ := drive(t, []session.Message{user("do it")}, results, allTools)
	before := len(history)
	reply := `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"demo_3","questions":[],"answers":[{"id":"demo","selected":["long"]}]}`
	history, said := drive(t, append(history, user(reply)), results, allTools)
	if len(history) != before+2 || !strings.Contains(said, `"long"`) || !strings.Contains(said, "a.txt") {
		t.Errorf("said %q in %d messages", said, len(history)-before)
	}
	// The next task starts over, with ids of its own.
	history, _ = drive(t, append(history, user("again")), results, allTools)
	if got := callsOf(history[before+2:]); !strings.HasPrefix(got, "demo_4 glob") || strings.Count(got, "\n") != 2 {
		t.Errorf("calls of the second task:\n%s", got)
	}
}

func TestDemoReplyThatComesBeforeTheClosingText(t *testing.T) {
	results := map[string]string{"glob": "a.txt", "ask_user_question": `{"pending":true,"callId":"demo_3"}`}
	history, _ := drive(t, []session.Message{user("do it")}, results, allTools)
	history[len(history)-1] = user(`{"kind":"answer_to_pending_question","answers":[{"id":"demo","selected":["long"]}]}`)
	if _, said := drive(t, history, results, allTools); !strings.Contains(said, `"long"`) {
		t.Errorf("said %q", said)
	}
}
