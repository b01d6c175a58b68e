package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exampleModel asks what the demo model asks and then has enough to say for whatever goes on.
const exampleModel = `responses:
  - tool_calls: [{id: call_7, name: ask_user_question, arguments: {questions: [{id: demo, question: 'Which one?', options: [{label: short}, {label: long}]}]}}]
`

// examplesElsewhere are examples that need more than a test can give them
// offline, without a terminal and without a live run, with the exit code that says so.
var examplesElsewhere = map[string]int{
	`deepseek answer last`:         2, // a terminal to ask in
	`deepseek attach last`:         4, // a live run
	`deepseek attach last --quiet`: 4, // the same
}

// TestEveryExampleOfHelpWorks runs each example as it stands, through a shell, in
// a home with one session that has a goal and a question that waits.
func TestEveryExampleOfHelpWorks(t *testing.T) {
	w := newWorld(t)
	const begin = `deepseek run --mode timed --timeout 1 --goal "all tests pass" --max-goal-rounds 1`
	if code, out := w.shell(t, w.home, begin); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, command := range w.commands(t) {
		for _, example := range w.examples(t, command) {
			t.Run(example, func(t *testing.T) {
				t.Parallel()
				want := examplesElsewhere[example]
				if code, out := w.shell(t, w.copyHome(t), example); code != want {
					t.Errorf("exit %d, want %d:\n%s", code, want, out)
				}
			})
		}
	}
}

// world is a workspace and a home in which lines of a shell run offline.
type world struct{ dir, ws, home string }

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: dir, ws: filepath.Join(dir, "ws"), home: filepath.Join(dir, "home")}
	w.file(t, "ws/README.md", "# A project\n", 0o600)
	w.file(t, "llm.yaml", exampleModel+strings.Repeat("  - {text: done}\n", 30), 0o600)
	for _, editor := range []string{"vi", "nano"} {
		w.file(t, "bin/"+editor, "#!/bin/sh\ntest -f \"$1\"\n", 0o700)
	}
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) file(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// copyHome is a home like the first, for one example.
func (w *world) copyHome(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.CopyFS(home, os.DirFS(w.home)); err != nil {
		t.Fatal(err)
	}
	return home
}

// shell runs a line. What it writes into /tmp it writes into a folder of the test.
func (w *world) shell(t *testing.T, home, line string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tmp := t.TempDir()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", strings.ReplaceAll(line, " /tmp", " "+tmp))
	cmd.Dir, cmd.WaitDelay = w.ws, patience
	cmd.Env = []string{
		"HOME=" + home, "EDITOR=vi", "PATH=" + filepath.Join(w.dir, "bin") + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
		"DEEPSEEK_MODEL=script:" + filepath.Join(w.dir, "llm.yaml"),
	}
	raw, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

// commands are all commands, by the names of their manual pages.
func (w *world) commands(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(w.dir, "man")
	if code, out := w.shell(t, w.home, `deepseek help --man "`+dir+`"`); code != 0 {
		t.Fatal(out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "deepseek*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	var names []string
	for _, p := range pages {
		name := strings.TrimSuffix(filepath.Base(p), ".1")
		names = append(names, strings.ReplaceAll(name, "-", " "))
	}
	return names
}

// examples are the lines of a command's help that stand under Examples.
func (w *world) examples(t *testing.T, command string) []string {
	t.Helper()
	code, help := w.shell(t, w.home, command+" --help")
	_, rest, found := strings.Cut(help, "Examples:\n")
	if code != 0 || !found {
		t.Fatalf("%s --help: exit %d\n%s", command, code, help)
	}
	block, _, _ := strings.Cut(rest, "\n\n")
	var list []string
	for l := range strings.Lines(block) {
		list = append(list, strings.TrimSpace(l))
	}
	return list
}
