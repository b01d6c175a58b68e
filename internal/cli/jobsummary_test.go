package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/session"
)

func waitingResult(question string, queued bool) *session.RunResult {
	return &session.RunResult{SessionID: "S", Questions: []session.OpenQuestion{{
		CallID: "q1", Queued: queued, Answer: "deepseek answer S q1",
		Questions: []session.Question{{ID: "a", Header: "Port", Question: question, Options: []session.Option{{Label: "8080", Description: "as before"}}}},
	}}}
}

func TestSummaryOfAJob(t *testing.T) {
	hostile := "```\n# owned\n\x1b[2J"
	got := summaryOf(waitingResult(hostile, false))
	for _, want := range []string{"1 question waits", "````text\nPort: ```", "  - 8080: as before", "```text\ndeepseek answer S q1\n```", "^[[2J"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := summaryOf(waitingResult("x", true)); got != "" {
		t.Errorf("an answer is queued: %s", got)
	}
	if got := summaryOf(waitingResult(strings.Repeat("long ", 1<<20), false)); len(got) > 3*summaryBound {
		t.Errorf("%d bytes", len(got))
	}
}

func TestSummaryIsAddedAndFailsNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "summary.md")
	if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, err string }{
		{file, ""}, {"", ""}, {dir, "is no regular file"}, {filepath.Join(dir, "none", "x"), "no such file"},
	} {
		var errs bytes.Buffer
		a := newApp(Streams{Out: &bytes.Buffer{}, Err: &errs}, []string{"GITHUB_STEP_SUMMARY=" + c.path})
		a.jobSummary(waitingResult("Which?", false))
		if got := errs.String(); c.err == "" && got != "" || !strings.Contains(got, c.err) {
			t.Errorf("%s: %q", c.path, got)
		}
	}
	if got := readFile(t, file); !strings.HasPrefix(got, "before\n### deepseek") {
		t.Errorf("%q", got)
	}
}
