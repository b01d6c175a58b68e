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
	"strconv"
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

// memDesk is the desk of an asker: it accepts, and ends nothing by itself.
type memDesk struct{ remaining time.Duration }

func (d memDesk) Attach(context.Context) (time.Duration, bool, error) {
	return d.remaining, d.remaining > 0, nil
}
func (memDesk) Respond(context.Context, []session.Answer) (bool, error) { return true, nil }
func (memDesk) Reject(context.Context, string) (bool, error)            { return true, nil }
func (memDesk) Late(context.Context, []session.Answer) (bool, error)    { return true, nil }
func (memDesk) State(context.Context) (string, error)                   { return StateOpen, nil }
func (memDesk) Detach(context.Context) error                            { return nil }
func (memDesk) Ended() <-chan Ended                                     { return nil }

// asker runs cards named by its arguments, each with the countdown in PROMPT_TEST_LEFT, and
// prints what became of them, whether the terminal is cooked, and goroutines left over.
func asker() {
	left, _ := time.ParseDuration(os.Getenv("PROMPT_TEST_LEFT"))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	before, err := term.GetState(0)
	if err != nil {
		fmt.Println("RESULT no terminal", err)
		return
	}
	open := OpenTTY
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
	for i, name := range os.Args[1:] {
		card := map[string]Card{"colours": timedCard(colours), "batch": batch(), "approval": approvalCard()}[name]
		func() {
			defer func() {
				if r := recover(); r != nil {
					fmt.Println("PANIC", r)
				}
			}()
			res, err := p.Run(ctx, card, memDesk{left})
			after, _ := term.GetState(0)
			for end := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
				runtime.Gosched() // one that has said its last word may not be gone yet
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
// when it stops, and continues it when a line is typed.
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
		if typed, _ := in.ReadString('\n'); typed != "bg\n" {
			_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid)
		}
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

func (s *ptySession) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return trimScreen(s.vt.String())
}

func (s *ptySession) send(x string) {
	s.t.Helper()
	if _, err := s.f.WriteString(x); err != nil {
		s.t.Fatal(err)
	}
}

// until waits until all of want is on the screen together.
func (s *ptySession) until(want ...string) string {
	s.t.Helper()
	return s.wait(s.screen, want)
}

// mark is how much has been written so far; since waits for something written after it.
func (s *ptySession) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.Len()
}

func (s *ptySession) since(mark int, want string) {
	s.t.Helper()
	s.wait(func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.raw.String()[mark:]
	}, []string{want})
}

func (s *ptySession) wait(look func() string, want []string) string {
	s.t.Helper()
	end := time.After(15 * time.Second)
	for {
		seen, all := look(), true
		for _, w := range want {
			all = all && strings.Contains(seen, w)
		}
		if all {
			return seen
		}
		select {
		case <-s.news:
		case <-end:
			s.t.Fatalf("no %q in:\n%s", want, seen)
		}
	}
}

const clean = "err=<nil> cooked=true goroutines=+0"

func TestPtyCountdownTicksAndExpires(t *testing.T) {
	s := startPty(t, ptyOptions{left: 2500 * time.Millisecond, args: []string{"colours"}})
	s.since(0, "  3s")
	s.since(0, "  2s")
	s.since(0, "  1s")
	screen := s.until("RESULT 0 expired \"\" " + clean)
	if !strings.Contains(screen, "left pending, answer later with: deepseek answer s1 call_1") || strings.Contains(screen, "Which colour?") {
		t.Fatal(screen)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.raw.String(), "\x1b[6n") {
		t.Fatal("the terminal was asked something")
	}
}

func TestPtyArrowsPauseAndEnterAnswers(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("\x1b[B")
	s.until("> green", "paused")
	s.send("\r")
	s.until("? Colour: green (answered)", `RESULT 0 answered "c=green" `+clean)
}

func TestPtySplitEscapesAndUnknownOnes(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("\x1b")
	s.send("[B")
	s.send("\x1b[1;5C\x1b[I\x1bx\x1b]0;title\x07")
	s.until("> green")
	s.send("\r")
	s.until(`"c=green" ` + clean)
}

func TestPtyPasteAndEditing(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("\x1b[200~粘贴\rtext\x1b[201~")
	s.until("粘贴", "text", "no countdown")
	s.send("\x1b[D\x7f\x7fX\r")
	s.until(`"c=/粘贴\ntXt" ` + clean)
}

func TestPtyBatchWithReview(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"batch"}})
	s.until("Colour (1/3)")
	s.send("\x1b[B\r")
	s.until("Name (2/3)")
	s.send("Ann\r")
	s.until("Question (3/3)")
	s.send(" \x1b[B \r")
	s.until("Review", "green", "Ann", "one, two", "> Send")
	s.send("\r")
	s.until(`"c=green;n=/Ann;m=one,two" ` + clean)
}

func TestPtyTypeAheadIsKeptAndItsEnterDropped(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours", "approval"}})
	s.until("Other…")
	s.send("\r\rmauve\r") // the first Enter answers; what follows is typed before the next card
	s.until("Run this command?")
	s.send("\x1b[B\x1b[B\r")
	s.until(`RESULT 1 answered "approve=yes, once" ` + clean)
}

func TestPtyCtrlCRestores(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("ab\x03")
	s.until("RESULT 0 interrupted \"\" " + clean)
	s.mu.Lock()
	defer s.mu.Unlock()
	if raw := s.raw.String(); !strings.HasSuffix(raw[:strings.Index(raw, "RESULT")], leaveRaw) || !s.vt.CursorVisible() {
		t.Fatalf("cursor and pastes are not as they were: %q", raw)
	}
}

func TestPtySIGTERMMidCardRestores(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("ab\x1b")
	s.until("ab")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.until("RESULT 0 gone", "cooked=true goroutines=+0")
}

func TestPtySIGQUITRestores(t *testing.T) {
	s := startPty(t, ptyOptions{role: "shell", left: time.Minute, args: []string{"colours"}, env: []string{"GOTRACEBACK=none"}})
	s.until("Other…")
	// The group is the foreground one of the terminal.
	group, err := unix.IoctlGetInt(int(s.f.Fd()), unix.TIOCGPGRP)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-group, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.until("SHELL exited cooked=true")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(s.raw.String(), "SIGQUIT") {
		t.Error("the signal did not do what it does")
	}
}

func TestPtyCtrlZ(t *testing.T) {
	t.Run("untouched past its time expires", func(t *testing.T) {
		s := startPty(t, ptyOptions{role: "shell", left: 2500 * time.Millisecond, args: []string{"colours"}})
		s.until("Other…")
		s.send("\x1a")
		s.until("SHELL stopped cooked=true")
		<-time.After(2600 * time.Millisecond) // the time the card has
		s.send("fg\r")
		s.until("RESULT 0 expired \"\" "+clean, "SHELL exited")
	})
	t.Run("touched is redrawn", func(t *testing.T) {
		s := startPty(t, ptyOptions{role: "shell", left: time.Minute, args: []string{"colours"}})
		s.until("Other…")
		s.send("mauve")
		s.until("mauve")
		s.send("\x1a")
		s.until("SHELL stopped cooked=true")
		mark := s.mark()
		s.send("fg\r")
		s.since(mark, "> Other…: mauve")
		s.send("!")
		s.until("mauve!")
		s.send("\r")
		s.until(`RESULT 0 answered "c=/mauve!" `+clean, "SHELL exited")
	})
	t.Run("going on in the background lets the claim go", func(t *testing.T) {
		s := startPty(t, ptyOptions{role: "shell", left: time.Minute, args: []string{"colours"}})
		s.until("Other…")
		s.send("mauve\x1a")
		s.until("SHELL stopped cooked=true")
		s.send("bg\r")
		s.until("RESULT 0 gone", "the program runs in the background", "cooked=true", "SHELL exited cooked=true")
	})
	t.Run("a stop from outside", func(t *testing.T) {
		s := startPty(t, ptyOptions{role: "shell", left: time.Minute, args: []string{"colours"}})
		s.until("Other…")
		group, err := unix.IoctlGetInt(int(s.f.Fd()), unix.TIOCGPGRP)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(group, syscall.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		s.until("SHELL stopped")
		mark := s.mark()
		s.send("fg\r")
		s.since(mark, "Other…")
		s.send("\x1b[B\x1b[B\r")
		s.until(`"c=blue" ` + clean)
	})
	t.Run("with no shell to come back from, the card goes on", func(t *testing.T) {
		s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
		s.until("Other…")
		s.send("x\x1ay")
		s.until("xy")
		s.send("\r")
		s.until(`"c=/xy" ` + clean)
	})
}

func TestPtyResizeDoesNotSmear(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send(strings.Repeat("x", 50))
	s.until(strings.Repeat("x", 50))
	for _, cols := range []int{40, 24, 70, 20} {
		s.mu.Lock()
		s.vt.Resize(cols, 16)
		s.mu.Unlock()
		if err := pty.Setsize(s.f, &pty.Winsize{Rows: 16, Cols: uint16(cols)}); err != nil {
			t.Fatal(err)
		}
		s.send("y")
		s.until("Which colour?", "y")
	}
	s.until("xyyyy")
	screen := s.screen()
	if strings.Count(screen, "Which colour?") != 1 || strings.Count(screen, "green") != 1 || strings.Count(screen, "? Co") != 1 {
		t.Fatalf("smeared:\n%s", screen)
	}
	s.send("\x15ok\r")
	s.until("? Colour: ok (answe", "RESULT 0 answered")
}

func TestPtyNarrowRedrawDoesNotSmear(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, cols: 20, args: []string{"colours"}})
	s.until("Other…", "Ctrl+T")
	s.send("abcdefghijklmnopqrstuvwxyz\x1b[A\x1b[A")
	screen := s.until("> green", "wxyz")
	if strings.Count(screen, "Which colour?") != 1 || strings.Count(screen, "green") != 1 {
		t.Fatalf("smeared:\n%s", screen)
	}
}

func TestPtyDumbTerminal(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours", "approval"}, env: []string{"TERM=dumb"}})
	s.until("1. red", ">")
	s.send("3\r")
	s.until(`RESULT 0 answered "c=blue" `+clean, "1. no")
	s.send("2\r")
	s.until("say it in words")
	s.send("not now\r")
	s.until(`"approve=no, because…/not now" ` + clean)
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.raw.String(), "\x1b") {
		t.Fatalf("an escape sequence: %q", s.raw.String())
	}
}

func TestPtyDumbTerminalExpires(t *testing.T) {
	s := startPty(t, ptyOptions{left: 300 * time.Millisecond, args: []string{"colours"}, env: []string{"TERM=dumb"}})
	s.until("left pending, answer later with:", "RESULT 0 expired \"\" "+clean)
}

// TestPtySelectSource: the way of reading that systems use whose poller takes no terminals.
func TestPtySelectSource(t *testing.T) {
	s := startPty(t, ptyOptions{left: 1500 * time.Millisecond, args: []string{"colours", "batch", "colours"}, env: []string{"PROMPT_TEST_SELECT=1"}})
	s.until("Other…")
	s.send("\x1b[B\r")
	s.until(`RESULT 0 answered "c=green" ` + clean)
	s.until("RESULT 1 expired \"\" " + clean)
	s.until("RESULT 2 expired \"\" " + clean)
}

// TestPtyKeysRacingExpiry floods lone escapes round the deadline: the card ends in time, and the
// next one works.
func TestPtyKeysRacingExpiry(t *testing.T) {
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := startPty(t, ptyOptions{left: 200 * time.Millisecond, args: []string{"colours", "colours"}})
			s.until("Other…")
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				tick := time.NewTicker(time.Duration(2+3*i) * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						if _, err := s.f.WriteString("\x1b"); err != nil {
							return
						}
					}
				}
			}()
			defer func() { close(stop); <-stopped }()
			s.until("RESULT 0 expired \"\" " + clean)
			s.until("RESULT 1 expired \"\" " + clean)
		})
	}
}
