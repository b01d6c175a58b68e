package permission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func needSandbox(t *testing.T) {
	t.Helper()
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
}

// restricted lists the threads of this process that are not free. The thread of
// a start may take a moment to end.
func restricted(t *testing.T) []string {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, name := range threads {
		status, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(status, []byte("NoNewPrivs:\t1")) && !bytes.Contains(status, []byte("State:\tX")) && !bytes.Contains(status, []byte("State:\tZ")) {
			held = append(held, name)
		}
	}
	return held
}

// busy keeps all processors at work until the test ends, so that threads lose
// theirs at any point.
func busy(t *testing.T) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		group.Go(func() {
			for n := 0; ; n++ {
				if n%1000 == 0 {
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); group.Wait() })
}

// Many commands that start at the same time are held each to its own sandbox,
// and this program to none.
func TestSandboxOfManyStartsAtOnce(t *testing.T) {
	needSandbox(t)
	b := newBox(t)
	const many = 200
	stop := make(chan struct{})
	var free, commands sync.WaitGroup
	for i := range 4 {
		free.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// Each time on whatever thread the runtime has, new ones included.
				done := make(chan error)
				go func() {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					done <- os.WriteFile(fmt.Sprintf("%s/free%d", b.outside, i), []byte("x"), 0o644)
				}()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range many {
		commands.Go(func() {
			own := fmt.Sprintf("%s/own%d", b.ws, i)
			if err := os.Mkdir(own, 0o755); err != nil {
				t.Error(err)
				return
			}
			other := fmt.Sprintf("%s/own%d", b.ws, (i+1)%many)
			script := fmt.Sprintf("echo x >%s/in || echo not inside; for f in %s/out%d %s/o.txt %s/stolen; do (echo x >$f) && echo outside; done; true", own, b.outside, i, b.outside, other)
			out, err := output(&Sandbox{Writable: []string{own}}, exec.CommandContext(t.Context(), "/bin/sh", "-c", script))
			if err != nil || strings.Contains(string(out), "side\n") {
				t.Errorf("%d: %v: %s", i, err, out)
			}
		})
	}
	commands.Wait()
	close(stop)
	free.Wait()
	if got, err := os.ReadFile(b.outside + "/o.txt"); string(got) != "o\n" {
		t.Errorf("outside changed: %q, %v", got, err)
	}
	for i := range many {
		if _, err := os.Lstat(fmt.Sprintf("%s/own%d/in", b.ws, i)); err != nil {
			t.Error(err)
		}
		for _, f := range []string{fmt.Sprintf("%s/out%d", b.outside, i), fmt.Sprintf("%s/own%d/stolen", b.ws, i)} {
			if _, err := os.Lstat(f); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	// The last thread may still be on its way out.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		held := restricted(t)
		if len(held) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("threads that stay restricted: %v", held)
		}
	}
}

// The thread that begins a command is in the command's own domain, so the
// command may trace it, and it shares its memory with the whole program. It has
// to be gone when the command's first instruction runs.
func TestSandboxedCommandNeverMeetsTheThreadThatBeganIt(t *testing.T) {
	needSandbox(t)
	busy(t)
	const look = `for t in /proc/$PPID/task/*; do [ -e $t/exe ] && echo $t; done; true`
	for range 100 {
		out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", look))
		if err != nil || len(out) > 0 {
			t.Fatalf("%v: it could reach into %s", err, out)
		}
	}
}

// Signals that reach a command while it is being started do not stop it halfway:
// that would stop this whole program.
func TestSandboxedStartsAmongSignals(t *testing.T) {
	needSandbox(t)
	if os.Getenv("AMONG_SIGNALS") != "" {
		startAmongSignals(t)
		return
	}
	// In a process of its own, since one that stands still cannot even say so.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSandboxedStartsAmongSignals$")
	cmd.Env = append(os.Environ(), "AMONG_SIGNALS=1")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v: %s", err, ctx.Err(), out)
	}
}

func startAmongSignals(t *testing.T) {
	self, last := os.Getpid(), os.Getpid()
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			for pid := last + 1; pid < last+40; pid++ {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err != nil {
					continue
				}
				if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); fields[1] == strconv.Itoa(self) {
					_ = unix.Kill(pid, []unix.Signal{unix.SIGUSR1, unix.SIGTERM, unix.SIGCONT, unix.SIGINT}[n%4])
				}
				last = pid - 5
			}
		}
	})
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		// Most are ended by a signal, like any program; none runs traced or masked.
		out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", "exec grep -E 'TracerPid|SigBlk' /proc/self/status"))
		if err == nil && string(out) != "TracerPid:\t0\nSigBlk:\t0000000000000000\n" {
			t.Errorf("%q", out)
		}
	}
	close(stop)
	group.Wait()
}

func TestSandboxedCommandIsFreeOfItsTracer(t *testing.T) {
	needSandbox(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "grep -E 'TracerPid|NoNewPrivs' /proc/$$/status; kill -TRAP $$")
	out, err := output(&Sandbox{}, cmd)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGTRAP {
		t.Errorf("%v", err)
	}
	if string(out) != "TracerPid:\t0\nNoNewPrivs:\t1\n" {
		t.Errorf("%q", out)
	}
}

// Where the start fails nothing has run, and the next one is as good as any.
func TestSandboxedStartsThatFail(t *testing.T) {
	needSandbox(t)
	b := newBox(t)
	b.write(b.ws+"/no-program", "")
	for name, cmd := range map[string]*exec.Cmd{
		"missing":       {Path: b.ws + "/missing"},
		"no program":    {Path: b.ws + "/no-program"},
		"no folder":     {Path: "/bin/true", Dir: b.ws + "/missing"},
		"a long line":   {Path: "/bin/true", Args: []string{"true", strings.Repeat("x", 4<<20)}},
		"NUL in a word": {Path: "/bin/true", Args: []string{"true", "a\x00b"}},
	} {
		for range 5 {
			if err := (&Sandbox{Writable: []string{b.ws}}).Start(cmd); err == nil {
				t.Errorf("%s: started", name)
				_ = cmd.Wait() // it is told of already
			}
			*cmd = exec.Cmd{Path: cmd.Path, Dir: cmd.Dir, Args: cmd.Args}
		}
	}
	// A folder that cannot be looked at makes no sandbox, so nothing starts.
	ran := b.outside + "/ran"
	err := (&Sandbox{Writable: []string{b.ws + "/sub/old.txt/below"}}).Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "echo x >" + ran}})
	if _, serr := os.Lstat(ran); err == nil || serr == nil || !strings.Contains(err.Error(), "the command was not run, the sandbox failed") {
		t.Errorf("%v, %v", err, serr)
	}
	if err := os.WriteFile(ran, nil, 0o644); err != nil {
		t.Error(err)
	}
	if out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo x >"+ran)); err == nil {
		t.Errorf("written: %s", out)
	}
}

// What a command gets open: nothing to read, and the pipe for its output.
func TestSandboxedCommandInheritsItsPipeAlone(t *testing.T) {
	needSandbox(t)
	b := newBox(t)
	for i := range 8 { // as this process's parent could have left them
		f, err := os.OpenFile(fmt.Sprintf("%s/left%d", b.outside, i), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // nothing was written
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
			t.Fatal(err)
		}
	}
	out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", `ls -l /proc/$$/fd; (echo x >&0) 2>/dev/null && echo "0 -> writable"; true`))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		link, target, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		switch fd := link[strings.LastIndexByte(link, ' ')+1:]; {
		case !ok, fd == "0" && target == "/dev/null", (fd == "1" || fd == "2") && strings.HasPrefix(target, "pipe:"):
		default:
			t.Errorf("open: %s", line)
		}
	}
}

// The kernel holds what is below the command to the sandbox too, whatever it does to get away.
func TestSandboxHoldsDescendants(t *testing.T) {
	needSandbox(t)
	b := newBox(t)
	target := b.outside + "/o.txt"
	for _, script := range []string{
		"env -i /bin/sh -c 'echo x >" + target + "'",
		"setsid -f /bin/sh -c 'echo x >" + target + "'; true",
		"(/bin/sh -c '(sleep 0.05; echo x >" + target + ") &' &); sleep 0.2; true",
		"exec 3<>/proc/$PPID/fd/0; cp /bin/sh ./sh; ./sh -c 'echo x >" + target + "'",
		"echo x >/proc/$$/root" + target,
		"echo x >/proc/$PPID/root" + target,
		"cd /; echo x >/proc/self/cwd" + target,
		"unshare -rm /bin/sh -c 'mount --bind " + b.ws + " " + b.outside + " && echo x >" + target + "'",
		"mount --bind " + b.outside + " " + b.ws + " && echo x >" + b.ws + "/o.txt",
		"for f in /proc/$PPID/task/*/fd/*; do echo x >$f; done",
		"chroot / /bin/sh -c 'echo x >" + target + "'",
	} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Dir = b.ws
		_, _ = output(&Sandbox{Writable: []string{b.ws}}, cmd) // whether it fails is its own matter
		if got, err := os.ReadFile(target); string(got) != "o\n" {
			t.Errorf("%s: %q, %v", script, got, err)
		}
	}
}

// A folder that commands may replace is not followed to where they pointed it.
func TestAWritableFolderInAnotherIsNoWayOut(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.dir + "/cache/mod")
	p := b.policy(func(c *Config) { c.SandboxWritable = []string{b.dir + "/cache", b.dir + "/cache/mod"} })
	if out, err := b.sandboxed(p, "echo x >../cache/mod/f && rm -r ../cache/mod && ln -s "+b.outside+" ../cache/mod"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := b.sandboxed(p, "echo x > ../cache/mod/o.txt"); err == nil {
		t.Errorf("written through the link: %s", out)
	}
	if got, err := os.ReadFile(b.outside + "/o.txt"); string(got) != "o\n" {
		t.Errorf("outside changed: %q, %v", got, err)
	}
}

// The workspace itself may lie in a folder that commands may write to.
func TestAWorkspaceThatWasSwappedForALinkIsNotWrittenTo(t *testing.T) {
	b := newBox(t)
	p := b.policy(nil)
	if err := os.Rename(b.ws, b.dir+"/aside"); err != nil {
		t.Fatal(err)
	}
	b.link(b.outside, b.ws)
	// As if the link had come right after the decision.
	a, err := p.open(resolved{abs: b.ws + "/new.txt", missing: 1}, true)
	if err == nil {
		_ = a.Root.Close() // it should not be there
		t.Fatal("opened through the link")
	}
	if !errors.Is(err, errMoved) {
		t.Error(err)
	}
}

// Root's rights over other processes and the kernel do not go along: a command
// cannot read what this program's parents and neighbours were started with.
func TestSandboxedRootReadsNoOtherProcess(t *testing.T) {
	needSandbox(t)
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	other := exec.CommandContext(t.Context(), "/bin/sleep", "300")
	other.Env = []string{"SECRET=of-a-neighbour"}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for _, pid := range []int{other.Process.Pid, os.Getpid(), os.Getppid()} {
		for _, file := range []string{"environ", "mem", "auxv", "syscall", "stack", "maps"} {
			path := fmt.Sprintf("/proc/%d/%s", pid, file)
			out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", "dd status=none count=1 if="+path))
			if err == nil && len(out) > 0 {
				t.Errorf("%s: %q", path, out)
			}
		}
	}
	out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/sh", "-c", "grep Cap /proc/$$/status; cat /proc/kcore | head -c 1"))
	if err != nil && !strings.Contains(string(out), "Cap") {
		t.Fatal(err, string(out))
	}
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(line, ":\t")
		var set uint64
		if _, err := fmt.Sscanf(value, "%x", &set); !ok || err != nil {
			continue
		}
		for _, c := range forgone {
			if set&(1<<c) != 0 {
				t.Errorf("%s has %d", name, c)
			}
		}
	}
}

func BenchmarkSandboxedStart(b *testing.B) {
	if ok, why := Supported(); !ok {
		b.Skip(why)
	}
	box := &Sandbox{Writable: []string{b.TempDir()}}
	for b.Loop() {
		if out, err := output(box, exec.CommandContext(b.Context(), "/bin/true")); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// A system that was short of something a moment ago has a sandbox all the same.
func TestAShortageIsNotTheLackOfASandbox(t *testing.T) {
	var s support
	for _, short := range []error{unix.EMFILE, unix.EAGAIN, unix.ENOMEM, unix.ENFILE} {
		if _, _, err := s.get(func() (bool, string, error) { return false, "x", fmt.Errorf("fork: %w", short) }); !errors.Is(err, short) {
			t.Errorf("%v: %v", short, err)
		}
	}
	if ok, _, err := s.get(func() (bool, string, error) { return true, "", nil }); !ok || err != nil {
		t.Errorf("looked up again: %v, %v", ok, err)
	}
	s = support{}
	for range 2 {
		if ok, why, err := s.get(func() (bool, string, error) { return false, "no ptrace", unix.EPERM }); ok || err != nil || why != "no ptrace: "+unix.EPERM.Error() {
			t.Errorf("%v, %q, %v", ok, why, err)
		}
	}
	b := newBox(t)
	p := b.policy(func(c *Config) { c.Approver = &person{say: yes} })
	p.supported = func() (bool, string, error) { return false, "", unix.EMFILE }
	if _, err := p.Command(t.Context(), CommandRequest{Command: "true", TempDir: t.TempDir()}); !errors.Is(err, unix.EMFILE) {
		t.Errorf("Command: %v", err)
	}
}
