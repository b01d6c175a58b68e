package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const processesKey = "processes"

// processes are a script's programs in the background, by name, and the one on a
// terminal, if there is one. They belong to the goroutine of the script.
type processes struct {
	running  map[string]*process
	terminal *terminal
}

// process is one of them. done is closed at its end, after which state may be read.
type process struct {
	cmd      *exec.Cmd
	out, err output
	done     chan struct{}
	asked    time.Time // when it was last sent a signal, or started
}

// output is what a program has written so far. mu guards it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func processCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": cmdExits, "start": cmdStart, "waiterr": cmdWaiterr, "signal": cmdSignal, "kill9": cmdKill9,
		"finish": cmdFinish, "session": cmdSession, "waitfile": cmdWaitfile, "gone": cmdGone,
	}
}

func usage(ts *testscript.TestScript, neg, ok bool, words string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", words)
	}
}

// cmdExits: exits CODE PROG ARG…
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 1, "exits CODE PROG ARG…")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		got = status(exit.ProcessState)
	}
	if got != want {
		ts.Fatalf("exit %d, not %d", got, want)
	}
}

// status is a process's exit code as a shell gives it, but negative where a
// signal killed it: a program that ends itself with 143 is another thing.
func status(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -int(w.Signal())
	}
	return s.ExitCode()
}

// environ is the environment that exec gives a program.
func environ(ts *testscript.TestScript) []string {
	file := filepath.Join(ts.Getenv("WORK"), ".tmp", "environ")
	ts.Check(ts.Exec("environ", file))
	return strings.Split(ts.ReadFile(file), "\x00")
}

// command makes a program of the script's PATH with the script's environment. It
// does not outlive the script.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	env := environ(ts)
	path := args[0]
	if filepath.Base(path) == path {
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, path)); err == nil && !info.IsDir() {
				path = filepath.Join(dir, path)
				break
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ts.Defer(cancel)
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), env
	return cmd
}

// cmdStart: start NAME PROG ARG…; NAME_PID becomes its pid
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	all := ts.Value(processesKey).(*processes)
	usage(ts, neg, len(args) > 1 && all.running[args[0]] == nil, "start NAME PROG ARG…, NAME not in use")
	p := &process{cmd: command(ts, args[1:]), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.WaitDelay = patience // a child that keeps the pipes does not hang the script
	p.asked = time.Now()
	ts.Check(p.cmd.Start())
	go func() { // ends with the process
		defer close(p.done)
		_ = p.cmd.Wait() // the state says it
	}()
	ts.Defer(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		if all.running[args[0]] == p {
			ts.Logf("[%s stdout]\n%s[%s stderr]\n%s", args[0], p.out.String(), args[0], p.err.String())
		}
	})
	all.running[args[0]] = p
	ts.Setenv(args[0]+"_PID", strconv.Itoa(p.cmd.Process.Pid))
}

func running(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processesKey).(*processes).running[name]
	if p == nil {
		ts.Fatalf("no program %q runs in the background", name)
	}
	return p
}

// waitMatch waits for a match in what a program writes, and returns its last group.
func waitMatch(ts *testscript.TestScript, p *process, o *output, re *regexp.Regexp) string {
	var found []string
	look := func() bool {
		found = re.FindStringSubmatch(o.String())
		return found != nil
	}
	poll(ts, func() bool {
		if look() {
			return true
		}
		select {
		case <-p.done:
			if !look() {
				ts.Fatalf("it ended without writing %q:\n%s", re, o.String())
			}
			return true
		default:
			return false
		}
	}, func() string { return fmt.Sprintf("nothing like %q was written:\n%s", re, o.String()) })
	return found[len(found)-1]
}

// cmdWaiterr: waiterr NAME RE [VAR]
func cmdWaiterr(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2 || len(args) == 3, "waiterr NAME RE [VAR]")
	p := running(ts, args[0])
	found := waitMatch(ts, p, &p.err, regexp.MustCompile("(?m)"+args[1]))
	if len(args) == 3 {
		ts.Setenv(args[2], found)
	}
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}

// cmdSignal: signal NAME SIG. A second signal may come when the first has ended the
// program already; finish tells what ended it.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2 && signals[args[1]] != 0, "signal NAME INT|TERM|HUP|QUIT|KILL|STOP|CONT")
	p := running(ts, args[0])
	p.asked = time.Now()
	if err := p.cmd.Process.Signal(signals[args[1]]); !errors.Is(err, os.ErrProcessDone) {
		ts.Check(err)
	}
}

// cmdKill9: kill9 NAME
func cmdKill9(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "kill9 NAME")
	p := running(ts, args[0])
	ts.Check(p.cmd.Process.Kill())
	end(ts, args[0], p, -int(syscall.SIGKILL))
}

// cmdFinish: finish [-within=D] NAME CODE
func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	var within time.Duration // since the signal, or the start
	if len(args) > 0 && strings.HasPrefix(args[0], "-within=") {
		var err error
		within, err = time.ParseDuration(strings.TrimPrefix(args[0], "-within="))
		ts.Check(err)
		within *= slower
		args = args[1:]
	}
	usage(ts, neg, len(args) == 2, "finish [-within=D] NAME CODE")
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	p := running(ts, args[0])
	if within > 0 {
		late := time.NewTimer(within - time.Since(p.asked))
		defer late.Stop()
		select {
		case <-p.done:
		case <-late.C:
			ts.Fatalf("%s still runs after %v:\n%s", args[0], within, p.err.String())
		}
	}
	end(ts, args[0], p, want)
}

func end(ts *testscript.TestScript, name string, p *process, want int) {
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("%s does not end:\n%s", name, p.err.String())
	}
	delete(ts.Value(processesKey).(*processes).running, name)
	_, _ = io.WriteString(ts.Stdout(), p.out.String()) // to memory
	_, _ = io.WriteString(ts.Stderr(), p.err.String())
	if got := status(p.cmd.ProcessState); got != want {
		ts.Fatalf("%s: exit %d, not %d", name, got, want)
	}
}
