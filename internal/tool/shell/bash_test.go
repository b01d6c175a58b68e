package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

func TestResults(t *testing.T) {
	tests := []struct{ name, command, want string }{
		{"output", "echo hi", "hi\n"},
		{"nothing", "true", ""},
		{"both streams, in order", "echo a; echo b >&2; echo c", "a\nb\nc\n"},
		{"exit code", "echo x; exit 3", "x\nexit code 3"},
		{"exit code without output", "exit 3", "exit code 3"},
		{"no newline before the exit code", "printf x; exit 3", "x\nexit code 3"},
		{"signal", "echo x; kill -KILL $$", "x\nsignal SIGKILL"},
		{"not UTF-8", `printf 'caf\xe9 \x00\n'`, `caf\xE9 \x00` + "\n"},
		{"no input", "read x; echo $?", "1\n"},
		{"no terminal", "(: < /dev/tty) 2>/dev/null || echo none", "none\n"},
		{"writes to its own streams by name", "echo e > /dev/stderr; echo o > /dev/stdout", "e\no\n"},
		{"here-documents", "cat <<E\nx\nE", "x\n"},
		{"temporary files", "f=$(mktemp) && echo ok > $f && cat $f && rm $f", "ok\n"},
		{"runs in its folder", "basename $PWD; [ $PWD = $(pwd -P) ] && echo same", "001\nsame\n"},
		{"key", "echo sk-test-; printf sk-test-; sleep 0.05; echo 0123456789", "sk-test-\n[key]\n"},
		{"late output of a process substitution", "echo a > >(sleep 0.05; cat)", "a\n"},
		{"begins like an option", "-x; echo $?", "/bin/bash: line 1: -x: command not found\n127\n"},
		{"syntax error", "if", "exit code 2"},
	}
	r := newRig(t, nil)
	r.idle, r.drain = patience, patience // nothing is left running: the pipe has an end
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := r.bash(tt.command)
			if tt.name == "syntax error" {
				_, got.Content, _ = strings.Cut(got.Content, "end of file\n")
			}
			if got.Code != "" || got.Content != tt.want {
				t.Errorf("%q %q, want %q", got.Code, got.Content, tt.want)
			}
		})
	}
	got := r.bash("exit 3")
	if got.Meta.ExitCode == nil || *got.Meta.ExitCode != 3 || got.Meta.Signal != "" || got.Meta.Spill != "" {
		t.Errorf("meta %+v", got.Meta)
	}
	if got = r.bash("kill -TERM $$"); got.Meta.ExitCode != nil || got.Meta.Signal != "SIGTERM" {
		t.Errorf("meta %+v", got.Meta)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	r := newRig(t, nil)
	if err := os.WriteFile(filepath.Join(r.dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]m{
		"command is empty":                {"command": " \n"},
		"NUL byte at 1":                   {"command": "a\x00b"},
		"131072 bytes, the limit is 1310": {"command": strings.Repeat("x", 131072)},
		"timeout_ms is 0":                 {"command": "true", "timeout_ms": 0},
		"no such file":                    {"command": "true", "workdir": "missing"},
		"~ does not stand for a home":     {"command": "true", "workdir": "~/x"},
		"is not a folder":                 {"command": "true", "workdir": "file"},
	} {
		got := r.call(t.Context(), "bash", args)
		if got.Code != tool.CodeInvalidArguments || !strings.Contains(got.Content, name) {
			t.Errorf("%s: %q", name, got.Content)
		}
	}
	if got := r.bash(": " + strings.Repeat("x", 131069)); got.Content != "" {
		t.Errorf("the longest command: %q", got.Content)
	}
}

func TestWorkdir(t *testing.T) {
	r := newRig(t, nil)
	if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"sub", filepath.Join(r.dir, "sub")} {
		if got := r.call(t.Context(), "bash", m{"command": "pwd", "workdir": dir}); got.Content != r.dir+"/sub\n" {
			t.Errorf("%q", got.Content)
		}
	}
}

func TestEnvironment(t *testing.T) {
	r := newRig(t, nil)
	got := r.bash("env").Content
	if strings.Contains(got, "0123456789") || strings.Contains(got, "[key]") || strings.Contains(got, "OTHER=") {
		t.Errorf("the key is in it:\n%s", got)
	}
	for _, want := range []string{"DEEPSEEK_TOOL=1\n", "KEPT=1\n", "PAGER=cat\n", "TERM=dumb\n", "GIT_TERMINAL_PROMPT=0\n", "PWD=" + r.dir + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestLongOutputKeepsItsEndAndSpillsTheWhole(t *testing.T) {
	r := newRig(t, nil)
	got := r.bash("echo FIRST " + testKey + "; seq 1 20000; echo LAST; exit 7")
	if fit := tool.Fit(got, nil, ""); fit.Content != got.Content {
		t.Error("it is cut again")
	}
	lines := strings.Split(got.Content, "\n")
	path := filepath.Join(r.spill.dir, "call_1.txt")
	if !strings.HasSuffix(got.Content, "\n20000\nLAST\nexit code 7") || !strings.Contains(lines[0], path) || len(got.Content) > maxResult || len(got.Content) < tailSize-10 {
		t.Errorf("%d bytes, %q … %q", len(got.Content), lines[0], lines[len(lines)-3:])
	}
	if first, err := strconv.Atoi(lines[1]); err != nil || lines[2] != strconv.Itoa(first+1) {
		t.Errorf("begins within a line: %q", lines[1])
	}
	if got.Meta.Spill != "call_1.txt" {
		t.Errorf("meta %+v", got.Meta)
	}
	whole, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(whole), "FIRST [key]\n1\n") || !strings.HasSuffix(string(whole), "20000\nLAST\n") {
		t.Errorf("%d bytes spilled, %v", len(whole), err)
	}
}

// TestOutputIsKeptWholeBeforeItIsCut: what is longer than results of tools are is in
// a file, and up to the tail's size it is shown whole besides.
func TestOutputIsKeptWholeBeforeItIsCut(t *testing.T) {
	r := newRig(t, nil)
	got := r.bash("head -c 50000 /dev/zero | tr '\\0' x")
	if got.Content != strings.Repeat("x", 50_000) || r.spill.n != 0 || got.Meta.Spill != "" {
		t.Errorf("%d bytes, %d files, %+v", len(got.Content), r.spill.n, got.Meta)
	}
	got = r.bash("head -c 65536 /dev/zero | tr '\\0' x")
	first, rest, _ := strings.Cut(got.Content, "\n")
	path := filepath.Join(r.spill.dir, got.Meta.Spill)
	if first != "[65536 bytes of output; the whole is in "+path+"]" || rest != strings.Repeat("x", 65_536) {
		t.Errorf("%q, %d bytes", first, len(rest))
	}
	if whole, err := os.ReadFile(path); err != nil || string(whole) != rest {
		t.Errorf("%d bytes spilled, %v", len(whole), err)
	}
	if fit := tool.Fit(got, nil, ""); fit.Content != got.Content {
		t.Error("it is cut again")
	}
	got = r.bash("head -c 15000 /dev/zero") // shown as four times as many
	if !strings.HasPrefix(got.Content, "[15000 bytes of output; the whole is in ") || !strings.HasSuffix(got.Content, strings.Repeat(`\x00`, 15_000)) || got.Meta.Spill == "" {
		t.Errorf("%d bytes, %+v", len(got.Content), got.Meta)
	}
}

func TestOutputThatIsNoTextIsCutAsItIsShown(t *testing.T) {
	r := newRig(t, nil)
	got := r.bash("echo FIRST; head -c 40000 /dev/zero; echo LAST; exit 7") // each byte is shown as four
	first, rest, _ := strings.Cut(got.Content, "\n")
	if !strings.HasPrefix(first, "[the end of 40011 bytes of output; the whole is in ") || !strings.HasSuffix(rest, "\\x00LAST\nexit code 7") || len(rest) > tailSize+20 || len(rest) < tailSize-10 {
		t.Errorf("%q, %d bytes", first, len(rest))
	}
	if whole, err := os.ReadFile(filepath.Join(r.spill.dir, "call_1.txt")); err != nil || len(whole) != 40011 || got.Meta.Spill != "call_1.txt" {
		t.Errorf("%d bytes spilled, %v, %+v", len(whole), err, got.Meta)
	}
	if fit := tool.Fit(got, nil, ""); fit.Content != got.Content {
		t.Error("it is cut again")
	}
}

func TestSpillIsBoundedAndSaysSo(t *testing.T) {
	r := newRig(t, nil)
	r.max = 100_000
	got := r.bash("seq 1 50000")
	if fi, err := os.Stat(filepath.Join(r.spill.dir, "call_1.txt")); err != nil || fi.Size() != 100_000 {
		t.Errorf("%v, %v", fi, err)
	}
	if !strings.Contains(got.Content, "the first 100000 bytes are in ") || !strings.HasSuffix(got.Content, "\n50000\n") {
		t.Errorf("%.200q", got.Content)
	}
}

func TestSpillThatFailsEndsNoCommand(t *testing.T) {
	r := newRig(t, nil)
	r.spill.dir = "/nowhere/at/all"
	got := r.bash("seq 1 50000")
	if !strings.Contains(got.Content, "could not be kept: ") || !strings.HasSuffix(got.Content, "\n50000\n") {
		t.Errorf("%.200q", got.Content)
	}
}

func TestManyMillionLines(t *testing.T) {
	if testing.Short() {
		t.Skip("prints 39 MB")
	}
	r := newRig(t, nil)
	inTime(t, func() {
		if got := r.bash("seq 1 5000000; echo LAST; exit 7"); !strings.HasSuffix(got.Content, "\n5000000\nLAST\nexit code 7") {
			t.Errorf("%.200q", got.Content)
		}
	})
	if fi, err := os.Stat(filepath.Join(r.spill.dir, "call_1.txt")); err != nil || fi.Size() != 38888896+5 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestTimeout(t *testing.T) {
	for i, c := range []struct{ name, command string }{ // SLEEP is one that no other command has
		{"endless output", "echo begun; yes SLEEP"},
		{"silence", "echo begun; SLEEP"},
		{"ignores TERM", "trap '' TERM; echo begun; SLEEP; SLEEP; SLEEP"},
		{"closes its output", "echo begun; exec >&- 2>&-; SLEEP"},
		{"stopped", "echo begun; kill -STOP $$; SLEEP"},
		{"children that ignore it", "echo begun; (trap '' TERM; SLEEP; SLEEP) & wait"},
		{"a child in a session", "echo begun; setsid -w SLEEP"},
		{"a background one besides", "echo begun; setsid SLEEP & SLEEP"},
	} {
		sleep := fmt.Sprintf("sleep %d", 3010+i)
		command := strings.ReplaceAll(c.command, "SLEEP", sleep)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each takes all the time that even a slow machine needs to begin
			r := newRig(t, nil)
			r.max = 1 << 20
			inTime(t, func() {
				got := r.call(t.Context(), "bash", m{"command": command, "timeout_ms": 5000})
				if got.Code != "" || !strings.Contains(got.Content+"\n", "\ntimed out after 5000 ms\n") {
					t.Errorf("%q %.300q", got.Code, got.Content)
				}
				if c.name != "endless output" && !strings.HasPrefix(got.Content, "begun\n") {
					t.Errorf("%.300q", got.Content)
				}
			})
			if left := alive(t, sleep); left != "" {
				t.Errorf("left running: %s", left)
			}
		})
	}
}

func TestCancelKeepsWhatWasPrinted(t *testing.T) {
	r := newRig(t, nil)
	r.grace = patience / 4 // which passes where a signal comes between a fork and its program
	ctx, cancel := context.WithCancel(t.Context())
	raw := `{"command":"trap 'echo ended; exit' TERM; sleep 302 & echo begun; wait"}`
	inTime(t, func() {
		got := r.Tools()[0].Run(ctx, tool.Call{ID: "c", Arguments: []byte(raw), Progress: func(line string) {
			if line == "begun" {
				cancel()
			}
		}})
		if got.Code != tool.CodeAborted || !strings.HasPrefix(got.Content, "ABORTED: ") || !strings.HasSuffix(got.Content, "\nbegun\nended\n") {
			t.Errorf("%q %q", got.Code, got.Content)
		}
	})
	if left := alive(t, "sleep 302"); left != "" {
		t.Errorf("left running: %s", left)
	}
}

func TestWhatIsLeftRunningDoesNotHoldTheCallAndEndsWithTheFamily(t *testing.T) {
	for name, command := range map[string]string{
		"background":              "sleep 303 & echo ok",
		"session":                 "setsid sleep 303 & echo ok",
		"without its environment": "env -i setsid sleep 303 & echo ok",
		"double fork":             "(setsid sh -c 'sleep 303 & exec sleep 303' &) ; echo ok",
		"nohup":                   "nohup sleep 303 >/dev/null 2>&1 & until [ ! -d /proc ] || [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; echo ok", // nothing else makes the call wait for it
		"ignores TERM":            "(trap '' TERM; sleep 303; sleep 303) & echo ok",
		"own group":               "set -m; sleep 303 & echo ok",
		"prints on":               "(while sleep 0.01; do echo x; done; : sleep 303) >&2 & echo ok",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			inTime(t, func() {
				if got := r.bash(command); got.Code != "" || !strings.HasPrefix(got.Content, "ok\n") && name != "prints on" {
					t.Errorf("%q", got.Content)
				}
			})
			if name != "prints on" && alive(t, "sleep 303") == "" {
				t.Error("ended with the call")
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if left := alive(t, "sleep 303"); left != "" {
				t.Errorf("left running: %s", left)
			}
		})
	}
}

func TestAServerLeftRunningSurvivesItsOutput(t *testing.T) {
	r := newRig(t, nil)
	got := r.bash("(until [ -e go ]; do sleep 0.02; done; seq 1 100000; echo done > mark) & echo ok")
	if !strings.HasPrefix(got.Content, "ok\nnote: ") {
		t.Errorf("%q", got.Content)
	}
	if got := r.bash("touch go; until [ -s mark ]; do sleep 0.02; done; cat mark"); got.Content != "done\n" {
		t.Errorf("%q", got.Content)
	}
}

// The time that an open pipe is waited for may pass before this process gets to
// read what was printed before: it is slow, or stood still.
func TestWhatWasPrintedIsKeptHoweverLateItIsRead(t *testing.T) {
	r := newRig(t, nil)
	r.idle, r.drain = 0, 0
	ended := func() bool { return len(table.running()) == 0 }
	hold := sync.OnceFunc(func() {
		for !ended() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // the reader's time begins, and is over
	})
	raw := `{"command":"echo FIRST; seq 1 10000; echo LAST"}`
	got := r.Tools()[0].Run(t.Context(), tool.Call{ID: "c", Arguments: []byte(raw), Progress: func(string) { hold() }})
	if !strings.HasPrefix(got.Content, "FIRST\n1\n") || !strings.HasSuffix(got.Content, "\n10000\nLAST\n") {
		t.Errorf("%.100q … %q", got.Content, got.Content[max(0, len(got.Content)-100):])
	}
}

func TestOrphansAreReapedAndNobodyElsesChildren(t *testing.T) {
	r := newRig(t, nil)
	r.bash("for i in 1 2 3; do (setsid sh -c 'exit 5' &) ; done")
	for end := time.Now().Add(patience); ; {
		r.bash("true") // reaps those that have ended by now
		procs, err := scan()
		if err != nil {
			t.Skip(err)
		}
		if procs = slices.DeleteFunc(procs, func(p proc) bool { return !table.orphan(p) }); len(procs) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", procs)
		}
	}
}

func TestFamiliesEndOnlyTheirOwn(t *testing.T) {
	root, child := newRig(t, nil), newRig(t, nil)
	root.bash("setsid sleep 304 & env -i setsid sleep 304 & sleep 0.1")
	child.bash("setsid sleep 305 & sleep 0.1")
	if err := child.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := alive(t, "sleep 305"); left != "" {
		t.Errorf("left running: %s", left)
	}
	if n := len(strings.Fields(alive(t, "sleep 304"))); n != 2 {
		t.Errorf("%d of the other family's 2 are left", n)
	}
	if err := root.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := alive(t, "sleep 304"); left != "" {
		t.Errorf("left running: %s", left)
	}
}

func TestCloseEndsARunningCall(t *testing.T) {
	r := newRig(t, nil)
	started := make(chan struct{})
	start := sync.OnceFunc(func() { close(started) })
	done := make(chan tool.Result, 1)
	go func() {
		done <- r.Tools()[0].Run(context.Background(), tool.Call{
			ID: "c", Arguments: []byte(`{"command":"trap '' TERM; echo begun; sleep 306; sleep 306"}`), Progress: func(string) { start() },
		})
	}()
	<-started
	inTime(t, func() {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if got := <-done; got.Code != tool.CodeAborted || !strings.Contains(got.Content, "begun") {
		t.Errorf("%q", got.Content)
	}
	if left := alive(t, "sleep 306"); left != "" {
		t.Errorf("left running: %s", left)
	}
	if got := r.bash("true"); got.Code != tool.CodeAborted && got.Code != tool.CodeInternal {
		t.Errorf("after Close: %q", got.Content)
	}
}

func TestCloseWhoseContextEndsWaitsForNoGrace(t *testing.T) {
	r := newRig(t, nil)
	r.grace = 2 * patience
	r.bash("(trap '' TERM; sleep 307; sleep 307) & echo ok")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inTime(t, func() {
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if left := alive(t, "sleep 307"); left != "" {
		t.Errorf("left running: %s", left)
	}
}

func TestCloseRemovesTheTemporaryFolder(t *testing.T) {
	r := newRig(t, nil)
	dir := strings.TrimSpace(r.bash("mkdir $TMPDIR/d; touch $TMPDIR/d/f; chmod 500 $TMPDIR/d; echo $TMPDIR").Content)
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", fi, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestCloseLeavesNoGoroutineAndNoDescriptor(t *testing.T) {
	newRig(t, nil).bash("true") // what the runtime opens once
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 3 {
		r := newRig(t, nil)
		r.bash("sleep 309 & echo ok")
		r.bash("seq 1 20000")
		r.background("sleep 309")
		r.call(t.Context(), "bash", m{"command": "sleep 309", "timeout_ms": 10})
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // a goroutine that has said that it is done may still be on its way out
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, before %d", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, before %d", n, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

func BenchmarkTrue(b *testing.B) {
	f := New(Env{Cwd: "/", Environ: os.Environ(), Policy: open{}})
	bash := f.Tools()[0]
	for b.Loop() {
		if r := bash.Run(b.Context(), tool.Call{ID: "c", Arguments: []byte(`{"command":"true"}`)}); r.Content != "" {
			b.Fatal(r.Content)
		}
	}
	if err := f.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

type refuse struct{}

func (refuse) Command(context.Context, permission.CommandRequest) (permission.Launch, error) {
	return permission.Launch{}, &permission.Denied{Asked: true, Message: "the user said no"}
}

func TestDenied(t *testing.T) {
	r := newRig(t, func(e *Env) { e.Policy = refuse{} })
	for _, args := range []m{{"command": "touch f"}, {"command": "touch f", "run_in_background": true}} {
		got := r.call(t.Context(), "bash", args)
		if got.Content != "DENIED: the user said no" || got.Code != tool.CodeDenied || !got.Meta.Denied {
			t.Errorf("%+v", got)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "f")); err == nil {
		t.Error("it ran")
	}
}

func TestSandboxedCommand(t *testing.T) {
	if ok, why := permission.Supported(); !ok {
		t.Skip(why)
	}
	outside := t.TempDir()
	r := newRig(t, nil)
	p, err := permission.New(permission.Config{Level: permission.WorkspaceWrite, Approve: permission.ApproveAsk, Cwd: r.dir, Home: outside + "/home"})
	if err != nil {
		t.Fatal(err)
	}
	r.env.Policy = p
	if got := r.bash("echo x > in && echo e > /dev/stderr && f=$(mktemp) && echo ok > $f && cat $f in"); got.Content != "e\nok\nx\n" {
		t.Errorf("%q", got.Content)
	}
	got := r.bash("echo x > " + outside + "/f")
	if !strings.Contains(got.Content, "Permission denied\nexit code 1\nnote: ") {
		t.Errorf("%q", got.Content)
	}
	if got := r.call(t.Context(), "bash", m{"command": "sleep 308", "timeout_ms": 100}); got.Content != "timed out after 100 ms" {
		t.Errorf("%q", got.Content)
	}
}

func TestTextForTheModelIsShort(t *testing.T) {
	total := 0
	for _, tl := range newRig(t, nil).Tools() {
		s := tl.Spec()
		total += len(s.Name) + len(s.Description) + len(s.Parameters)
	}
	if total > 2000 {
		t.Errorf("%d bytes", total)
	}
}
