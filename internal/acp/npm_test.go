package acp_test

import (
	"context"
	_ "embed" // the client
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/client.mjs
var npmClient string

// TestTheClientOfTheNPMPackage drives the program with the protocol's own
// TypeScript package. It needs node, and a folder in which
// `npm install @agentclientprotocol/sdk@2` was done:
//
//	ACP_NPM_DIR=/some/folder go test ./internal/acp -run NPM -v
func TestTheClientOfTheNPMPackage(t *testing.T) {
	dir := os.Getenv("ACP_NPM_DIR")
	if dir == "" {
		t.Skip("ACP_NPM_DIR names no folder with @agentclientprotocol/sdk in node_modules")
	}
	w := newWorld(t, `
responses:
  - reasoning: I should look first.
    tool_calls:
      - {id: w1, name: write, arguments: {file_path: ../out.txt, content: "x\n"}}
      - {id: t1, name: todo_write, arguments: {todos: [{content: write it, status: in_progress}]}}
  - text: written
  - tool_calls: [{id: q1, name: ask_user_question, arguments: {questions: [{id: port, question: "Which port?", options: [{label: "8080"}, {label: "9090"}]}]}}]
  - text: cut
    finish: length
  - tool_calls: [{id: b1, name: bash, arguments: {command: sleep 60}}]
  - tool_calls: [{id: w2, name: write, arguments: {file_path: ../other.txt, content: "x\n"}}]
  - text: not written
  - tool_calls:
      - {id: r1, name: read, arguments: {file_path: a.txt}}
      - {id: e1, name: edit, arguments: {file_path: a.txt, old_string: two, new_string: zwei}}
  - text: edited
  - tool_calls: [{id: q2, name: ask_user_question, arguments: {questions: [{id: color, question: "Which colour?", options: [{label: red}, {label: blue}]}]}}]
  - text: painted
`)
	if err := os.WriteFile(filepath.Join(w.ws, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "deepseek-client.mjs") // beside node_modules, where imports are looked up
	if err := os.WriteFile(script, []byte(npmClient), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(script) })
	run := func(model, prompts string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", script, prompts, w.ws, os.Args[0], "acp", "--model", "script:"+model, "--mode", "timed")
		cmd.Env = slices.Concat(w.env, []string{"ACP_TEST_AGENT=1"})
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	failing := filepath.Join(filepath.Dir(w.script), "failing.yaml")
	if err := os.WriteFile(failing, []byte("responses: [{error: {code: AUTH, message: the key is refused}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(failing, "one"); !strings.Contains(out, "only -32603 AUTH: the key is refused") || !strings.Contains(out, "stdout sound") || !strings.Contains(out, "answered once true") {
		t.Error("a model error does not reject the prompt, once")
	}
	out := run(w.script, "all")
	at := 0
	for _, want := range []string{
		"initialized 1", "thought I should look first.", "tool_call w1 edit pending", "ask create", "tool_call_update w1 completed diff line 1",
		"plan write it: in_progress", "text written", "first end_turn",
		"ask Which port?", "text cut", "token limit", "second end_turn", "tool_call_update b1 in_progress", "too early -32602", "third cancelled",
		"tool_call w2", "tool_call_update w2 failed", "text not written", "fourth end_turn",
		"tool_call_update e1 completed diff line 2", "fifth end_turn", "blocks -32602 prompt[1].name: is missing", "mode {}", "sessions 2",
		"ask Which colour?", "exit 0", "stdout sound", "answered once true", `last {"stopReason":"cancelled"}`,
	} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("%q has not come, or not in its place", want)
		}
		at += i
	}
	// The client is gone, and its question is still open.
	_, id, _ := strings.Cut(out, "session ")
	id, _, _ = strings.Cut(id, "\n")
	if code, said, errs := w.command("answer", id, "q2", "--select", "color=blue", "--model", "script:"+w.script); code != 0 || !strings.Contains(said, "painted") {
		t.Errorf("answer: %d %s %s", code, said, errs)
	}
	if said := w.questions(id); !strings.Contains(said, `"callId":"q2"`) || !strings.Contains(said, `"active":[]`) {
		t.Errorf("questions: %s", said)
	}
	if code, said, errs := w.command("sessions", "check", id); code != 0 {
		t.Errorf("check: %d %s %s", code, said, errs)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.ws), "other.txt")); err == nil {
		t.Error("a write that was refused was made")
	}
}
