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
    tool_calls: [{id: w1, name: write, arguments: {file_path: ../out.txt, content: "x\n"}}]
  - text: written
  - tool_calls: [{id: q1, name: ask_user_question, arguments: {questions: [{id: port, question: "Which port?", options: [{label: "8080"}, {label: "9090"}]}]}}]
  - text: cut
    finish: length
  - text: late
    delay_ms: 60000
`)
	script := filepath.Join(dir, "deepseek-client.mjs") // beside node_modules, where imports are looked up
	if err := os.WriteFile(script, []byte(npmClient), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(script) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script, w.ws, os.Args[0], "acp", "--model", "script:"+w.script, "--mode", "timed")
	cmd.Env = slices.Concat(w.env, []string{"ACP_TEST_AGENT=1"})
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"initialized 1", "thought I should look first.", "tool_call w1 edit pending", "ask create", "tool_call_update w1 completed diff", "text written", "first end_turn",
		"ask Which port?", "text cut", "second end_turn", "too early -32602", "third cancelled", "mode {}", "sessions 1", "exit 0",
	} {
		i := strings.Index(string(out)[at:], want)
		if i < 0 {
			t.Fatalf("%q has not come, or not in its place", want)
		}
		at += i
	}
}
