package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deepseek/internal/config"
	"deepseek/internal/fakellm"
)

func (b box) instructions(t *testing.T, cwd string) (text, errs string) {
	t.Helper()
	var stderr bytes.Buffer
	a := &App{Err: &output{to: &stderr}, Env: b.env}
	o := &owner{app: a, cfg: &config.Config{Home: b.home}, cwd: cwd}
	return o.instructions(), stderr.String()
}

func TestInstructionsAreReadFromHomeAndFromRootToHere(t *testing.T) {
	b := newBox(t)
	here := filepath.Join(b.cwd, "a", "b")
	b.write(t, filepath.Join(b.cwd, ".git", "HEAD"), "")
	b.write(t, filepath.Join(b.home, instructionsFile), "mine")
	b.write(t, filepath.Join(b.cwd, instructionsFile), "root")
	b.write(t, filepath.Join(b.cwd, "a", "x"), "")
	b.write(t, filepath.Join(here, instructionsFile), "here")
	b.write(t, filepath.Join(here, "c", instructionsFile), "never")
	got, errs := b.instructions(t, here)
	var heads []string
	for line := range strings.SplitSeq(got, "\n") {
		if path, ok := strings.CutPrefix(line, "# "); ok {
			heads = append(heads, path)
		}
	}
	want := []string{filepath.Join(b.home, instructionsFile), filepath.Join(b.cwd, instructionsFile), filepath.Join(here, instructionsFile)}
	if !slices.Equal(heads, want) || errs != "" || strings.Contains(got, "never") {
		t.Errorf("headed %q, want %q\n%s%s", heads, want, got, errs)
	}
}

func TestInstructionsThatLeadOutOfTheProjectAreLeftOut(t *testing.T) {
	b := newBox(t)
	b.write(t, filepath.Join(b.cwd, ".git", "HEAD"), "")
	secret := filepath.Join(filepath.Dir(b.cwd), "secret")
	b.write(t, secret, "secret")
	pipes := filepath.Join(b.cwd, "pipe")
	if err := os.MkdirAll(pipes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(b.cwd, instructionsFile)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipes, instructionsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	got, errs := b.instructions(t, pipes)
	if got != "" || strings.Count(errs, "is left out") != 2 {
		t.Errorf("%q %q", got, errs)
	}
}

func TestInstructionsWhereThereIsNothing(t *testing.T) {
	b := newBox(t)
	if got, errs := b.instructions(t, b.cwd); got != "" || errs != "" {
		t.Errorf("%q %q", got, errs)
	}
	if got, errs := b.instructions(t, filepath.Join(b.cwd, "gone")); got != "" || !strings.Contains(errs, "no such file") {
		t.Errorf("%q %q", got, errs)
	}
}

// TestALongSessionOverTheWire: instructions, an adaptation, a compaction and a
// resume, held to the rules of the strictest server.
func TestALongSessionOverTheWire(t *testing.T) {
	b := newBox(t)
	b.write(t, filepath.Join(b.cwd, instructionsFile), "use tabs")
	long := strings.Repeat("many words ", 300)
	server := fakellm.Start(t, fakellm.Script{Rewrites: true, Steps: []fakellm.Step{
		{Reasoning: "hm", Text: "looked at it. " + long, Usage: &fakellm.Usage{Prompt: 3000, Completion: 700}},
		{Status: 400, Body: `{"error":{"message":"Missing reasoning_content field in the assistant message"}}`},
		{Text: "the sum of it", Usage: &fakellm.Usage{Prompt: 3800, Cached: 3000, Completion: 10}},
		{Text: "done", Usage: &fakellm.Usage{Prompt: 400, Completion: 5}},
	}})
	b.write(t, filepath.Join(b.home, "config.yaml"), "context_window: 4000\nmodel: some-model\nprices:\n  some-model: {input: 1, cached: 0.1, output: 2}\n")
	b.env = append(b.env, "DEEPSEEK_API_KEY=sk-12345678", "DEEPSEEK_BASE_URL="+server.URL)
	if c := b.call("run", "first"); c.code != 0 {
		t.Fatalf("%+v", c)
	}
	c := b.call("run", "--continue", "--output", "json", "second")
	if c.code != 0 {
		t.Fatalf("%+v", c)
	}
	var res struct {
		FinalResponse string
		Usage         struct {
			InputTokens, CacheReadTokens, OutputTokens int
			CostUSD                                    float64
		}
	}
	if err := json.Unmarshal([]byte(c.out), &res); err != nil {
		t.Fatal(err)
	}
	if u := res.Usage; res.FinalResponse != "done" || u.InputTokens != 1200 || u.CacheReadTokens != 3000 || u.OutputTokens != 15 || u.CostUSD == 0 {
		t.Errorf("%+v", res)
	}
	for _, want := range []string{"attempt 1 failed", "reasoning_content", "summed up"} {
		if !strings.Contains(c.err, want) {
			t.Errorf("stderr %q lacks %q", c.err, want)
		}
	}
	last := server.Requests()[3].Messages
	if len(last) != 3 || !bytes.Contains(last[1], []byte("the sum of it")) || !bytes.Contains(last[1], []byte("use tabs")) || !bytes.Contains(last[2], []byte("second")) {
		t.Errorf("%s", last)
	}
}

func TestInstructionsThatAreNoTextAreLeftOutWithAWarning(t *testing.T) {
	b := newBox(t)
	b.write(t, filepath.Join(b.cwd, ".git", "HEAD"), "")
	b.write(t, filepath.Join(b.home, instructionsFile), "mine, sch\xf6n")
	b.write(t, filepath.Join(b.cwd, instructionsFile), "\xff\xfeu\x00s\x00e\x00")
	got, errs := b.instructions(t, b.cwd)
	if !strings.Contains(got, "mine") || strings.Contains(got, filepath.Join(b.cwd, instructionsFile)) {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{filepath.Join(b.home, instructionsFile) + ": byte 10 is no UTF-8", filepath.Join(b.cwd, instructionsFile) + " is left out: it is UTF-16"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q lacks %q", errs, want)
		}
	}
}
