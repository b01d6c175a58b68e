package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/session"
)

// logged makes a log: seq and time count up.
type logged struct {
	t      *testing.T
	events []session.Event
	turn   int
	step   int
}

func newLogged(t *testing.T) *logged {
	t.Helper()
	l := &logged{t: t}
	schema := `{"type":"object","properties":{"questions":{},"timeout":{"type":"number"}}}`
	return l.add(session.TypeSettings, session.Settings{Mode: "timed", Timeout: 120, Permission: "workspace-write", Approve: "ask"}).
		header(schema)
}

func newLegacy(t *testing.T) *logged {
	t.Helper()
	return (&logged{t: t}).header(`{"type":"object","properties":{"questions":{}}}`)
}

func (l *logged) add(typ string, data any) *logged {
	l.t.Helper()
	e, err := session.NewEvent(typ, 1_790_000_000_000+1500*int64(len(l.events)), data)
	if err != nil {
		l.t.Fatal(err)
	}
	e.Seq = int64(len(l.events))
	l.events = append(l.events, e)
	return l
}

func (l *logged) header(schema string) *logged {
	return l.add(session.TypeRequestHeader, session.RequestHeader{Reason: session.HeaderInitial, Header: session.HeaderBody{
		Config: session.RequestConfig{Provider: "deepseek", Model: "deepseek-v4-flash"},
		System: "You are an agent.", Tools: []session.ToolSpec{{Name: session.AskTool, Parameters: json.RawMessage(schema)}},
	}})
}

func message(id, text, kind string) session.UserMessage {
	return session.NewUserMessage(id, text, session.Source{Kind: kind})
}

func reply(t *testing.T, id, callID, text string) session.UserMessage {
	t.Helper()
	return session.NewUserMessage(id, text, session.Source{Kind: session.SourceQuestionReply, CallID: callID, Outcome: "answered"})
}

func replyText(t *testing.T, callID string, answers ...session.Answer) string {
	t.Helper()
	text, err := session.ReplyText(callID, []session.Question{port()}, answers)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (l *logged) queue(list string, m session.UserMessage) *logged {
	return l.add(session.TypeInboxSpliced, session.InboxSpliced{Target: list, Inserted: []session.UserMessage{m}})
}

// begin opens a turn and a step that admit messages, which were queued alone in their list.
func (l *logged) begin(list string, msgs ...session.UserMessage) *logged {
	l.turn++
	l.step = 0
	l.add(session.TypeTurnStart, session.TurnStart{Turn: l.turn})
	if len(msgs) > 0 {
		l.add(session.TypeInboxSpliced, session.InboxSpliced{Target: list, RemovedCount: len(msgs), Inserted: []session.UserMessage{}})
	}
	l.next()
	for _, m := range msgs {
		l.add(session.TypeUserMessage, m)
	}
	return l
}

// task is a turn that a person's message opens.
func (l *logged) task(text string) *logged {
	m := message(fmt.Sprintf("m%d", len(l.events)), text, session.SourceUser)
	return l.queue(session.NextTurn, m).begin(session.NextTurn, m)
}

func (l *logged) next() *logged {
	if l.step > 0 {
		l.add(session.TypeStepEnd, session.StepMark{Turn: l.turn, Step: l.step})
	}
	l.step++
	return l.add(session.TypeStepStart, session.StepMark{Turn: l.turn, Step: l.step})
}

func (l *logged) says(reasoning, text string, calls ...session.Call) *logged {
	var content []session.Block
	if reasoning != "" {
		content = append(content, session.Block{Type: session.BlockReasoning, Text: reasoning})
	}
	if text != "" {
		content = append(content, session.Block{Type: session.BlockText, Text: text})
	}
	for _, c := range calls {
		content = append(content, session.Block{Type: session.BlockToolCall, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return l.add(session.TypeAssistantMessage, session.AssistantMessage{Turn: l.turn, Step: l.step, Message: session.ModelMessage{
		ID: fmt.Sprintf("a%d", len(l.events)), Role: "assistant", Content: content,
		Source: session.Source{Kind: session.SourceModel, Provider: "deepseek", Model: "deepseek-v4-flash"},
	}, Usage: &session.Usage{InputTokens: 100, OutputTokens: 20}})
}

func (l *logged) starts(c session.Call) *logged {
	return l.add(session.TypeToolCall, session.ToolCall{Turn: l.turn, Step: l.step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
}

func (l *logged) result(c session.Call, code, content string, meta *session.ToolMeta) *logged {
	r := session.ToolResult{Turn: l.turn, Step: l.step, Meta: meta, Message: session.ToolMessage{
		ID: "r" + c.ID, Role: "tool", ToolCallID: c.ID, Content: content, IsError: code != "",
	}}
	if code != "" {
		r.Error = &session.ToolError{Name: c.Name, Code: code}
	}
	return l.add(session.TypeToolResult, r)
}

func (l *logged) does(c session.Call, code, content string, meta *session.ToolMeta) *logged {
	return l.starts(c).result(c, code, content, meta)
}

func (l *logged) ends(reason session.Reason) *logged {
	l.add(session.TypeStepEnd, session.StepMark{Turn: l.turn, Step: l.step})
	return l.add(session.TypeTurnEnd, session.TurnEnd{Turn: l.turn, Reason: reason})
}

func (l *logged) completes() *logged { return l.ends(session.Reason{Kind: session.EndCompleted}) }

func (l *logged) build(live bool, keep Bound) *Transcript {
	l.t.Helper()
	h := session.Header{Type: "session", Version: 1, ID: "20261130-171203-7f3kq", CreatedAt: 1_790_000_000_000, Cwd: "/home/ada/shop"}
	t, err := Build(h, func(yield func(session.Event, error) bool) {
		for _, e := range l.events {
			if !yield(e, nil) {
				return
			}
		}
	}, live, keep)
	if err != nil {
		l.t.Fatal(err)
	}
	return t
}

func text(t *testing.T, tr *Transcript, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteText(&b, tr, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func port() session.Question {
	return session.Question{ID: "port", Header: "Port", Question: "Which port shall the server listen on?", Options: []session.Option{
		{Label: "8080", Description: "what the tests use"}, {Label: "9090"},
	}}
}

var (
	readCall  = session.Call{ID: "call_1", Name: "read", Arguments: `{"file_path":"cmd/server/main.go"}`}
	readToo   = session.Call{ID: "call_2", Name: "read", Arguments: `{"file_path":"docs/文件/とても長い名前のファイル.md"}`}
	testCall  = session.Call{ID: "call_3", Name: "bash", Arguments: `{"command":"go test ./... 2>&1 | tail -40"}`}
	askCall   = session.Call{ID: "call_00_q", Name: session.AskTool, Arguments: `{"questions":[{"id":"port","header":"Port","question":"Which port shall the server listen on?","options":[{"label":"8080","description":"what the tests use"},{"label":"9090"}]}]}`}
	editCall  = session.Call{ID: "call_5", Name: "edit", Arguments: `{"file_path":"cmd/server/main.go","old_string":"8080","new_string":"9090"}`}
	childCall = session.Call{ID: "call_6", Name: "delegate", Arguments: `{"description":"look for other ports","prompt":"…"}`}
)

func pending(t *testing.T, callID string) string {
	t.Helper()
	s, err := session.PendingText(callID, "no answer yet")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// everything is a log that has something of everything: a question that went
// pending, its late answer, which opens a turn, and one that is queued.
func everything(t *testing.T) *logged {
	exit := 1
	l := newLogged(t).task("Make the port configurable.\n\nIt is hard-coded in cmd/server/main.go, and the tests rely on it more than they should.").
		add(session.TypeUserMessage, message("agents", "# AGENTS.md\nRun the tests before you say that you are done.", session.SourceAgentInstructions)).
		says("The user wants a configurable port. I read first.", "I will look at the server.", readCall, readToo, testCall).
		does(readCall, "", "     1\tpackage main\n     2\t\n     3\tconst port = 8080\n", &session.ToolMeta{DurationMS: 12}).
		does(readToo, "FS_NOT_FOUND", "FS_NOT_FOUND: no such file: docs/文件/とても長い名前のファイル.md", nil).
		add(session.TypeApprovalAsked, session.ApprovalAsked{CallID: testCall.ID, Tool: "bash", Title: "go test ./... 2>&1 | tail -40"}).
		add(session.TypeApprovalDecided, session.ApprovalDecided{CallID: testCall.ID, Decision: session.DecisionOnce}).
		does(testCall, "", "--- FAIL: TestPort\x1b[2J\nFAIL\nexit code 1", &session.ToolMeta{DurationMS: 2300, ExitCode: &exit}).
		next().add(session.TypeLLMRetry, session.Retry{Attempt: 1, DelayMS: 500, Error: session.ErrorInfo{Code: "SERVER", Message: "overloaded"}}).
		says("", "", askCall).does(askCall, "", pending(t, askCall.ID), nil).
		next().add(session.TypeTodoWrite, session.TodoWrite{Todos: []session.Todo{{Content: "read", Status: "completed"}, {Content: "edit", Status: "pending"}}}).
		says("", "", childCall).starts(childCall).
		add(session.TypeSubagent, map[string]any{"sessionId": "20261130-171300-aaaaa", "description": "look for other ports"}).
		result(childCall, "", "none found", nil).
		next().says("Nothing else can be done.", "I have read the server. The port waits for your answer.").completes()
	m := reply(t, "late", askCall.ID, replyText(t, askCall.ID, session.Answer{ID: "port", Selected: []string{"9090"}}))
	other := session.Call{ID: "call_01_q", Name: session.AskTool, Arguments: `{"questions":[{"id":"port","header":"Port","question":"Which port shall the server listen on?","options":[{"label":"8080"},{"label":"9090"}]}]}`}
	l.queue(session.NextStep, m).begin(session.NextStep, m).
		says("", "", editCall).
		does(editCall, "", "edited", &session.ToolMeta{Path: "cmd/server/main.go", Diff: "--- a\n+++ b\n@@ -3 +3 @@\n-const port = 8080\n+const port = 9090"}).
		next().says("", "", other).does(other, "", pending(t, other.ID), nil).
		next().says("", "The port is 9090 now.").completes()
	l.queue(session.NextStep, reply(t, "queued", other.ID, replyText(t, other.ID, session.Answer{ID: "port", Selected: []string{}, Custom: "any free one"})))
	return l.queue(session.NextTurn, message("next", "Then release it.", session.SourceUser))
}

func TestTranscriptAsText(t *testing.T) {
	answer := func(callID string) string { return "deepseek answer 20261130-171203-7f3kq " + callID }
	for name, o := range map[string]TextOptions{
		"pipe":               {},
		"pipe-expanded":      {Expand: true, Answer: answer},
		"40":                 {Terminal: true, Width: 40, Answer: answer},
		"40-expanded":        {Expand: true, Terminal: true, Width: 40, Answer: answer},
		"80":                 {Terminal: true, Width: 80, Answer: answer},
		"80-expanded":        {Expand: true, Terminal: true, Width: 80, Answer: answer},
		"80-expanded-ascii":  {Expand: true, Terminal: true, ASCII: true, Width: 80, Answer: answer},
		"200":                {Terminal: true, Width: 200, Answer: answer},
		"200-expanded":       {Expand: true, Terminal: true, Width: 200, Answer: answer},
		"40-colour":          {Terminal: true, Width: 40, Colour: true, Answer: answer},
		"80-expanded-colour": {Expand: true, Terminal: true, Width: 80, Colour: true, Answer: answer},
		"200-colour":         {Terminal: true, Width: 200, Colour: true, Answer: answer},
	} {
		t.Run(name, func(t *testing.T) {
			goldenTranscript(t, name+".txt", text(t, everything(t).build(false, TextBound(o.Expand)), o))
		})
	}
}

func TestTranscriptAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, everything(t).build(false, nil)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 {
		t.Error("it is not one line")
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	goldenTranscript(t, "page.json", indented.String())
}

func TestTranscriptAsHTML(t *testing.T) {
	var b bytes.Buffer
	if err := WriteHTML(&b, everything(t).build(false, HTMLBound), HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	goldenTranscript(t, "page.html", b.String())
}

func goldenTranscript(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "transcript", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run with -update:\n%s", path, got)
	}
}

// TestExpandShowsWhatCallsWereGivenWhole: a plan and a command are read back to their last line,
// however long they are, and so is what nothing else shows.
func TestExpandShowsWhatCallsWereGivenWhole(t *testing.T) {
	var steps []string
	for i := range 60 {
		steps = append(steps, fmt.Sprintf("step number %d", i))
	}
	long := strings.Repeat("word ", 100) + "last-word"
	l := newLogged(t).task("x").says("", "I begin.",
		session.Call{ID: "p", Name: "exit_plan_mode", Arguments: jsonOf(t, map[string]string{"plan": strings.Join(steps, "\n")})},
		session.Call{ID: "b", Name: "bash", Arguments: jsonOf(t, map[string]string{"command": "true\ncat <<X\n" + long + "\nX"})},
		session.Call{ID: "s", Name: "bash", Arguments: jsonOf(t, map[string]string{"command": "ls"})},
		session.Call{ID: "m", Name: "server__tool", Arguments: jsonOf(t, map[string]string{"query": long})},
	).says("", "Done.")
	for _, width := range []int{0, 80} {
		opened := text(t, l.build(false, TextBound(true)), TextOptions{Expand: true, Width: width})
		for _, want := range []string{"| step number 0\n", "| step number 59\n", "| cat <<X\n", "| X\n"} {
			if !strings.Contains(opened, want) {
				t.Errorf("width %d: no %q:\n%s", width, want, opened)
			}
		}
		if n := strings.Count(opened, "last-word"); n != 2 {
			t.Errorf("width %d: the ends of the command and of the query are there %d times:\n%s", width, n, opened)
		}
		if strings.Contains(opened, "| ls") {
			t.Errorf("what the title says is said again:\n%s", opened)
		}
	}
	if folded := text(t, l.build(false, TextBound(false)), TextOptions{}); strings.Contains(folded, "step number") {
		t.Errorf("folded:\n%s", folded)
	}
}

// TestApprovalsAreNamedByWhatTheyPermit: a title such as "run a command" alone says nothing.
func TestApprovalsAreNamedByWhatTheyPermit(t *testing.T) {
	l := newLogged(t).task("x").says("", "I begin.", testCall).starts(testCall)
	l.add(session.TypeApprovalAsked, session.ApprovalAsked{CallID: testCall.ID, Tool: "bash", Title: "run a command", Detail: "rm -r \\\n build"})
	l.add(session.TypeApprovalDecided, session.ApprovalDecided{CallID: testCall.ID, Decision: session.DecisionDenied, Message: "no"})
	if got := text(t, l.build(true, TextBound(false)), TextOptions{}); !strings.Contains(got, "approval denied: run a command: rm -r \\ build\n") {
		t.Error(got)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := session.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
