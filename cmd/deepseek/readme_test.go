package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"deepseek/internal/view"
)

// readmeModel tells the story of the README's transcript.
const readmeModel = `responses:
  - tool_calls: [{name: read, arguments: {file_path: server/main.go}}]
  - tool_calls: [{id: call_q, name: ask_user_question, arguments: {questions: [{id: port, header: Port, question: 'Which port should the new server listen on?', options: [{label: '8080'}, {label: '9090'}]}]}}]
  - tool_calls: [{name: edit, arguments: {file_path: server/main.go, old_string: oldRouter, new_string: newRouter}}]
  - tool_calls: [{name: bash, arguments: {command: 'go test ./server/...'}}]
  - text: 'The router is ported and the tests pass. The port is still the old one: that waits for your answer.'
  - text: The server now listens on 9090; tests pass.
`

// readme is the README's blocks of code behind a mark, which may be its beginning.
func readme(t *testing.T, mark string, n int) []string {
	t.Helper()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), mark)
	parts := strings.Split(rest, "```")
	if !found || len(parts) < 2*n {
		t.Fatalf("README.md: no %d blocks behind %q", n, mark)
	}
	var blocks []string
	for i := range n {
		_, block, _ := strings.Cut(parts[2*i+1], "\n")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestTheFirstFiveMinutesOfTheReadme runs its commands as they stand.
func TestTheFirstFiveMinutesOfTheReadme(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for line := range strings.Lines(readme(t, "## The first five minutes", 1)[0]) {
		line = strings.Replace(strings.TrimSpace(line), "--timeout 5", "--timeout 1", 1) // nobody answers it
		if code, out := w.shell(t, w.home, "unset DEEPSEEK_MODEL; "+line); code != 0 || out == "" {
			t.Errorf("%s: exit %d\n%s", line, code, out)
		}
	}
}

// TestTheTranscriptOfTheReadme runs the commands behind each $ and compares what
// they print, but for ids, times and the line of totals.
func TestTheTranscriptOfTheReadme(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file(t, "llm.yaml", readmeModel, 0o600)
	w.file(t, "ws/server/main.go", "package main // oldRouter\n", 0o600)
	w.file(t, "bin/go", "#!/bin/sh\n", 0o700)
	id := regexp.MustCompile(`20\d{6}-\d{6}-[a-z0-9]{5}`)
	total := regexp.MustCompile(`(?m)^session \S+  \d+ steps?  tokens .*\n`) // the README leaves it out
	took := regexp.MustCompile(`(\d+ h )?(\d+ m )?\d+(\.\d)? m?s\b`)
	plain := func(text string) string {
		text = total.ReplaceAllString(text, "")
		return strings.TrimSpace(took.ReplaceAllString(id.ReplaceAllString(text, "ID"), "T"))
	}
	session := ""
	for _, block := range readme(t, "", 2) {
		command, want, _ := strings.Cut(block, "\n")
		for _, text := range took.FindAllString(want, -1) {
			if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err != nil || view.Took(d) != text {
				t.Errorf("%q is written %q: %v", text, view.Took(d), err)
			}
		}
		if _, given, ok := strings.Cut(command, "--timeout "); ok {
			seconds, err := time.ParseDuration(strings.Fields(given)[0] + "s")
			if waited := "pending  " + view.Took(seconds) + "\n"; err != nil || !strings.Contains(want, waited) {
				t.Errorf("no question has been %q: %v", waited, err)
			}
		}
		line := strings.Replace(strings.TrimPrefix(command, "$ "), "--timeout 120", "--timeout 1", 1)
		line = strings.Replace(line, "answer 7f3kq", "answer "+session, 1)
		code, out := w.shell(t, w.home, "export DEEPSEEK_PERMISSION=full-access; "+line+" 2>&1")
		if got := plain(out); code != 0 || got != plain(want) {
			t.Errorf("%s: exit %d\n%s\nwant\n%s", line, code, got, plain(want))
		}
		session = id.FindString(out)
	}
}
