package prompt

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const clean = "err=<nil> cooked=true goroutines=+0"

func TestPtyCountdownTicksAndExpires(t *testing.T) {
	s := startPty(t, ptyOptions{left: 59 * time.Second, args: []string{"colours", "colours=300ms"}})
	s.written(0, "three countdowns, each less than the last", func(written string) bool {
		ticks, last := 0, 60
		for _, m := range regexp.MustCompile(`  (\d+)s`).FindAllStringSubmatch(written, -1) {
			left, err := strconv.Atoi(m[1])
			if err != nil || left > last {
				t.Fatalf("%s after %d", m[0], last)
			}
			if left < last {
				ticks++
			}
			last = left
		}
		return ticks >= 3
	})
	s.send("\x03")
	s.until("RESULT 0 interrupted")
	screen := s.until("RESULT 1 expired \"\" " + clean)
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

func TestPtyUnknownEscapes(t *testing.T) {
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours"}})
	s.until("Other…")
	s.send("\x1b[B\x1b[1;5C\x1b[I\x1bx\x1b]0;title\x07")
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
	if before, _, _ := strings.Cut(s.raw.String(), "RESULT"); !strings.HasSuffix(before, leaveRaw) || !s.vt.CursorVisible() {
		t.Fatalf("cursor and pastes are not as they were: %q", before)
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

func TestPtyCtrlZ(t *testing.T) {
	t.Run("untouched past its time expires", func(t *testing.T) {
		const left = 8 * time.Second // to get to the stop in
		s := startPty(t, ptyOptions{role: "shell", left: left, args: []string{"colours"}})
		s.until("Other…")
		s.send("\x1a")
		s.until("SHELL stopped cooked=true")
		<-time.After(left)
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
	t.Run("going on in the background lets the claim go, and comes back with the foreground", func(t *testing.T) {
		s := startPty(t, ptyOptions{role: "shell", left: time.Minute, args: []string{"colours"}})
		s.until("Other…")
		s.send("mauve\x1a")
		s.until("SHELL stopped cooked=true")
		s.send("bg\r")
		s.until("LET GO")
		mark := s.mark()
		s.send("fg\r")
		s.since(mark, "> Other…: mauve")
		s.send("!")
		s.until("mauve!")
		s.send("\r")
		s.until(`RESULT 0 answered "c=/mauve!" `+clean, "SHELL exited cooked=true")
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
		mark := s.mark()
		s.mu.Lock()
		s.vt.Resize(cols, 16)
		s.mu.Unlock()
		if err := pty.Setsize(s.f, &pty.Winsize{Rows: 16, Cols: uint16(cols)}); err != nil {
			t.Fatal(err)
		}
		s.redrawn(mark)
		s.send("y")
	}
	screen := s.until("Which colour?", "xyyyy")
	if strings.Count(screen, "Which colour?") != 1 || strings.Count(screen, "green") != 1 || strings.Count(screen, "? Co") != 1 {
		t.Fatalf("smeared:\n%s", screen)
	}
	s.send("\x15ok\r")
	s.until("? Colour: ok\n(answered)", "RESULT 0 answered")
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
	s := startPty(t, ptyOptions{left: time.Minute, args: []string{"colours", "batch=1s", "colours=1s"}, env: []string{"PROMPT_TEST_SELECT=1"}})
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
			s.since(0, "Other…")
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
			// What is echoed between the cards breaks lines of the screen.
			s.since(0, "RESULT 0 expired \"\" "+clean)
			s.since(0, "RESULT 1 expired \"\" "+clean)
		})
	}
}
