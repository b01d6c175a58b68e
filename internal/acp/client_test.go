package acp_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// editor is the SDK's own client. It allows what it is asked. mu guards updates.
type editor struct {
	mu      sync.Mutex
	updates []sdk.SessionUpdate
}

var _ sdk.Client = (*editor)(nil)

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	return nil
}

func (e *editor) RequestPermission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	for _, o := range r.Options {
		if o.Kind == sdk.PermissionOptionKindAllowOnce {
			return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
		}
	}
	return sdk.RequestPermissionResponse{}, errors.New("nothing to allow")
}

var errUnused = errors.New("not offered")

func (e *editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return sdk.ReadTextFileResponse{}, errUnused
}

func (e *editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return sdk.WriteTextFileResponse{}, errUnused
}

func (e *editor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	return sdk.CreateTerminalResponse{}, errUnused
}

func (e *editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return sdk.KillTerminalResponse{}, errUnused
}

func (e *editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{}, errUnused
}

func (e *editor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	return sdk.ReleaseTerminalResponse{}, errUnused
}

func (e *editor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	return sdk.WaitForTerminalExitResponse{}, errUnused
}

func TestAClientOfTheSDKGetsThoughtsCallsDiffsPlanUsageAndApprovals(t *testing.T) {
	w := newWorld(t, `
responses:
  - reasoning: I should look first.
    tool_calls:
      - {id: r1, name: read, arguments: {file_path: a.txt, offset: 2}}
      - {id: e1, name: edit, arguments: {file_path: a.txt, old_string: two, new_string: zwei}}
      - {id: t1, name: todo_write, arguments: {todos: [{content: translate, status: in_progress}, {content: check, status: pending}]}}
      - {id: w1, name: write, arguments: {file_path: ../out.txt, content: "new\n"}}
      - {id: b1, name: nosuch, arguments: {x: 1}}
    usage: {input: 100, cached: 64, output: 20}
  - text: All done.
`)
	if err := os.WriteFile(filepath.Join(w.ws, "a.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, out := w.startPiped()
	e := &editor{}
	c := sdk.NewClientSideConnection(e, s.in, out)
	c.SetLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	init, err := c.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil || init.ProtocolVersion != sdk.ProtocolVersionNumber || !init.AgentCapabilities.LoadSession {
		t.Fatalf("initialize: %+v %v", init, err)
	}
	begun, err := c.NewSession(ctx, sdk.NewSessionRequest{Cwd: w.ws, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Prompt(ctx, sdk.PromptRequest{SessionId: begun.SessionId, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("look at "), sdk.ResourceLinkBlock("a.txt", "file:///a.txt"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///b/c.txt", Text: "the text"}}),
	}})
	if err != nil || res.StopReason != sdk.StopReasonEndTurn {
		t.Fatalf("prompt: %+v %v", res, err)
	}
	e.mu.Lock()
	updates := e.updates
	e.mu.Unlock()

	thought, text := "", ""
	ends := map[sdk.ToolCallId]*sdk.SessionToolCallUpdate{}
	starts := map[sdk.ToolCallId]*sdk.SessionUpdateToolCall{}
	var plan *sdk.SessionUpdatePlan
	var usage *sdk.SessionUsageUpdate
	for _, u := range updates {
		switch {
		case u.AgentThoughtChunk != nil:
			thought += u.AgentThoughtChunk.Content.Text.Text
		case u.AgentMessageChunk != nil:
			text += u.AgentMessageChunk.Content.Text.Text
		case u.ToolCall != nil:
			starts[u.ToolCall.ToolCallId] = u.ToolCall
		case u.ToolCallUpdate != nil:
			if starts[u.ToolCallUpdate.ToolCallId] == nil {
				t.Errorf("an update of %s before its call", u.ToolCallUpdate.ToolCallId)
			}
			ends[u.ToolCallUpdate.ToolCallId] = u.ToolCallUpdate
		case u.Plan != nil:
			plan = u.Plan
		case u.UsageUpdate != nil:
			usage = u.UsageUpdate
		default:
			t.Errorf("an update of no kind that was asked for: %+v", u)
		}
	}
	if thought != "I should look first." || text != "All done." {
		t.Errorf("thought %q, text %q", thought, text)
	}
	if r := starts["r1"]; r == nil || r.Kind != sdk.ToolKindRead || r.Title != "read a.txt" || len(r.Locations) != 1 || r.Locations[0].Path != filepath.Join(w.ws, "a.txt") || *r.Locations[0].Line != 2 {
		t.Errorf("read: %+v", r)
	}
	edit := ends["e1"]
	if edit == nil || *edit.Status != sdk.ToolCallStatusCompleted || len(edit.Content) != 1 || edit.Content[0].Diff == nil {
		t.Fatalf("edit: %+v", edit)
	}
	if d := edit.Content[0].Diff; d.Path != filepath.Join(w.ws, "a.txt") || *d.OldText != "one\ntwo\nthree\n" || d.NewText != "one\nzwei\nthree\n" {
		t.Errorf("diff: %+v", d)
	}
	if w1 := ends["w1"]; *w1.Status != sdk.ToolCallStatusCompleted || w1.Content[0].Diff.OldText != nil || w1.Content[0].Diff.NewText != "new\n" {
		t.Errorf("write: %+v", w1)
	}
	if b := ends["b1"]; *b.Status != sdk.ToolCallStatusFailed || !strings.Contains(b.Content[0].Content.Content.Text.Text, "UNKNOWN_TOOL") {
		t.Errorf("an unknown tool: %+v", b)
	}
	if plan == nil || len(plan.Entries) != 2 || plan.Entries[0].Status != sdk.PlanEntryStatusInProgress {
		t.Errorf("plan: %+v", plan)
	}
	if usage == nil || usage.Used != 184 || usage.Size == 0 {
		t.Errorf("usage: %+v", usage)
	}
	if log := w.log(string(begun.SessionId)); !strings.Contains(log, `look at [a.txt](file:///a.txt)[c.txt](file:///b/c.txt)\n\n<context uri=\"file:///b/c.txt\">\nthe text\n</context>`) {
		t.Error("the prompt's parts are not in the message")
	}
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	s.exit(0)
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Error("the client's connection stays open")
	}
}
