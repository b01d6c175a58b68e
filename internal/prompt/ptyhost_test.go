package prompt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"deepseek/internal/session"
)

// The tests here run cards on a pseudo-terminal, in a process of their own: this test binary,
// told by the environment what to be.

func TestMain(m *testing.M) {
	switch os.Getenv("PROMPT_TEST_ROLE") {
	case "asker":
		asker()
	case "shell":
		shell()
	default:
		os.Exit(m.Run())
	}
}

// patience bounds every wait for something that has to come.
const patience = time.Minute

// memDesk is the desk of an asker: it accepts, and ends nothing by itself.
type memDesk struct{ remaining time.Duration }

func (d memDesk) Attach(context.Context) (time.Duration, bool, error) {
	return d.remaining, d.remaining > 0, nil
}
func (memDesk) Respond(context.Context, []session.Answer) (bool, error) { return true, nil }
func (memDesk) Reject(context.Context, string) (bool, error)            { return true, nil }
func (memDesk) Late(context.Context, []session.Answer) (bool, error)    { return true, nil }
func (memDesk) State(context.Context) (string, error)                   { return StateOpen, nil }
func (memDesk) Ended() <-chan Ended                                     { return nil }

func (memDesk) Detach(context.Context) error {
	if group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
		fmt.Println("LET GO in the background")
	}
	return nil
}

// asker runs cards named by its arguments, each with the countdown that follows its name, else
// the one in PROMPT_TEST_LEFT, and prints what became of them, whether the terminal is cooked, and goroutines left over.
func asker() {
	left, _ := time.ParseDuration(os.Getenv("PROMPT_TEST_LEFT"))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	before, err := term.GetState(0)
	if err != nil {
		fmt.Println("RESULT no terminal", err)
		return
	}
	open := func() (*TTY, error) { return OpenTTY(nil) }
	if os.Getenv("PROMPT_TEST_SELECT") != "" {
		open = openTTYSelect
	}
	tty, err := open()
	if err != nil {
		fmt.Println("RESULT", err)
		return
	}
	p := &Prompter{Terminal: tty, Colour: true, Plain: os.Getenv("TERM") == "dumb", Reflow: Reflows(os.Getenv)}
	if dir := os.Getenv("PROMPT_TEST_DRAFTS"); dir != "" {
		p.Drafts = FileDrafts{Dir: dir}
	}
	goroutines := runtime.NumGoroutine()
	for i, arg := range os.Args[1:] {
		name, own, _ := strings.Cut(arg, "=")
		left := left
		if own != "" {
			left, _ = time.ParseDuration(own)
		}
		card := map[string]Card{"colours": timedCard(colours), "batch": batch(), "approval": approvalCard()}[name]
		func() {
			defer func() {
				if r := recover(); r != nil {
					fmt.Println("PANIC", r)
				}
			}()
			res, err := p.Run(ctx, card, memDesk{left})
			after, _ := term.GetState(0)
			for end := time.Now().Add(patience / 2); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
				time.Sleep(time.Millisecond) // one that has said its last word may not be gone yet
			}
			fmt.Printf("RESULT %d %v %q err=%v cooked=%v goroutines=+%d\n", i, res.Outcome, brief(res.Answers), err,
				reflect.DeepEqual(before, after), max(runtime.NumGoroutine()-goroutines, 0))
		}()
	}
	if err := tty.Close(); err != nil {
		fmt.Println(err)
	}
}

func openTTYSelect() (*TTY, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	if err := rc.Control(func(p uintptr) { fd = int(p) }); err != nil {
		return nil, err
	}
	in, err := newSelectSource(f, fd)
	if err != nil {
		return nil, err
	}
	return &TTY{in: in, fd: fd, input: make(chan Input), signals: make(chan os.Signal, 8)}, nil
}

// shell is a shell with one job: it runs an asker in a group of its own in the foreground, says
// when it stops, and continues it when a line is typed: "bg" in the background, until the next line.
func shell() {
	signal.Ignore(syscall.SIGTTOU)
	cmd := exec.CommandContext(context.Background(), os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), "PROMPT_TEST_ROLE=asker")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	before, _ := term.GetState(0)
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	pid := cmd.Process.Pid
	in := bufio.NewReader(os.Stdin)
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil {
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			fmt.Println(err)
			return
		}
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, os.Getpid())
		now, _ := term.GetState(0)
		if !status.Stopped() {
			fmt.Printf("SHELL exited cooked=%v\n", reflect.DeepEqual(before, now))
			return
		}
		_ = term.Restore(0, before) // as shells do
		fmt.Printf("SHELL stopped cooked=%v\n", reflect.DeepEqual(before, now))
		if typed, _ := in.ReadString('\n'); typed == "bg\n" {
			_ = syscall.Kill(-pid, syscall.SIGCONT)
			_, _ = in.ReadString('\n')
		}
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid)
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	}
}

// ptySession is a child on a pseudo-terminal with a screen. The mutex guards raw.
type ptySession struct {
	t    *testing.T
	f    *os.File
	cmd  *exec.Cmd
	vt   vt10x.Terminal
	mu   sync.Mutex
	raw  strings.Builder
	news chan struct{}
	done chan struct{}
}

type ptyOptions struct {
	role string
	left time.Duration
	cols int
	env  []string
	args []string
}

func startPty(t *testing.T, o ptyOptions) *ptySession {
	t.Helper()
	t.Parallel()
	if o.role == "" {
		o.role = "asker"
	}
	if o.cols == 0 {
		o.cols = 100
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], o.args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "TMUX=", "VTE_VERSION=", "PROMPT_TEST_ROLE="+o.role, "PROMPT_TEST_LEFT="+o.left.String())
	cmd.Env = append(cmd.Env, o.env...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 16, Cols: uint16(o.cols)})
	if err != nil {
		t.Fatal(err)
	}
	s := &ptySession{t: t, f: f, cmd: cmd, vt: vt10x.New(vt10x.WithSize(o.cols, 16)), news: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			_, _ = s.vt.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = f.Close()
		<-s.done
	})
	return s
}

func (s *ptySession) send(x string) {
	s.t.Helper()
	if _, err := s.f.WriteString(x); err != nil {
		s.t.Fatal(err)
	}
}

// until waits until all of want is on the screen together, between two frames: one is drawn
// with one write, but may be read in pieces.
func (s *ptySession) until(want ...string) string {
	s.t.Helper()
	return s.wait(fmt.Sprintf("%q", want), func() (string, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		written := s.raw.String()
		whole := strings.LastIndex(written, frameEnds) >= strings.LastIndex(written, frameBegins)
		screen := trimScreen(s.vt.String())
		for _, w := range want {
			whole = whole && strings.Contains(screen, w)
		}
		return screen, whole
	})
}

const frameBegins, frameEnds = "\x1b[?7l", "\x1b[?7h"

// mark is how much has been written so far; since waits for something written after it.
func (s *ptySession) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.Len()
}

func (s *ptySession) since(mark int, want string) {
	s.t.Helper()
	s.written(mark, want, func(written string) bool { return strings.Contains(written, want) })
}

// redrawn waits until the card was erased since a mark, and stands again.
func (s *ptySession) redrawn(mark int) {
	s.t.Helper()
	s.written(mark, "card that was drawn anew", func(written string) bool {
		_, after, erased := strings.Cut(written, eraseBelow)
		return erased && strings.Contains(after, frameEnds)
	})
}

func (s *ptySession) written(mark int, what string, is func(written string) bool) {
	s.t.Helper()
	s.wait(what, func() (string, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := s.raw.String()[mark:]
		return seen, is(seen)
	})
}

func (s *ptySession) wait(what string, look func() (seen string, ok bool)) string {
	s.t.Helper()
	end := time.After(patience)
	for {
		seen, ok := look()
		if ok {
			return seen
		}
		select {
		case <-s.news:
		case <-end:
			s.t.Fatalf("no %s in:\n%s", what, seen)
		}
	}
}
