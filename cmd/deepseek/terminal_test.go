package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"
)

// A script has one terminal at a time:
//
//	term start [ROWSxCOLS] PROG…   run a program on a terminal of 24x80, which is its controlling one
//	term expect RE…                wait until each RE matches what the screen shows, all at once
//	! term expect RE…              none of them matches what it shows now
//	term once RE…                  each RE matches the screen just once
//	                               (what the screen shows is looked at between two frames of a card)
//	term wrote RE…                 wait until each RE matches what was written so far, without
//	                               escapes and lines that were erased
//	! term wrote RE…               none of them was written so far
//	term mark                      what was written before does not count for wrote
//	term send TEXT…                type; \r \e \x03 as in Go strings, \e for Escape
//	term resize ROWSxCOLS
//	term signal SIG
//	term wait CODE                 wait for the end; the terminal must be as it was before
//
// What was written is the stdout of the commands that follow term wait.

// terminal is a program on a pseudo terminal. raw and vt are under out.mu; done
// is closed at the process's end, drained when all it wrote has been read.
type terminal struct {
	f       *os.File
	cmd     *exec.Cmd
	vt      vt10x.Terminal
	out     output
	before  *term.State
	mark    int // bytes of out
	done    chan struct{}
	drained chan struct{}
}

func terminalOf(ts *testscript.TestScript) *terminal {
	t := ts.Value(processesKey).(*processes).terminal
	if t == nil {
		ts.Fatalf("no program runs on a terminal")
	}
	return t
}

func cmdTerm(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg && (len(args) == 0 || args[0] != "wrote" && args[0] != "expect"), len(args) > 1 || len(args) == 1 && args[0] == "mark", "term start|expect|once|wrote|mark|send|resize|signal|wait …")
	if args[0] == "start" {
		startTerminal(ts, args[1:])
		return
	}
	t := terminalOf(ts)
	switch args[0] {
	case "expect":
		if !neg {
			t.wait(ts, t.frame, args[1:])
			return
		}
		absent(ts, t.whole(ts), args[1:])
	case "once":
		screen := t.whole(ts)
		for _, re := range args[1:] {
			if n := len(regexp.MustCompile("(?m)"+re).FindAllString(screen, -1)); n != 1 {
				ts.Fatalf("%q is on the screen %d times:\n%s", re, n, screen)
			}
		}
	case "wrote":
		if !neg {
			t.wait(ts, func() (string, bool) { return t.text(), true }, args[1:])
			return
		}
		absent(ts, t.text(), args[1:])
	case "mark":
		t.out.mu.Lock()
		t.mark = t.out.buf.Len()
		t.out.mu.Unlock()
	case "send":
		for _, text := range args[1:] {
			typed, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `\e`, `\x1b`) + `"`)
			ts.Check(err)
			_, err = io.WriteString(t.f, typed)
			ts.Check(err)
		}
	case "resize":
		size, ok := parseSize(args[1])
		usage(ts, false, ok, "term resize ROWSxCOLS")
		t.out.mu.Lock()
		t.vt.Resize(int(size.Cols), int(size.Rows))
		t.out.mu.Unlock()
		ts.Check(pty.Setsize(t.f, size))
	case "signal":
		ts.Check(t.cmd.Process.Signal(signals[args[1]]))
	case "wait":
		code, err := strconv.Atoi(args[1])
		ts.Check(err)
		t.end(ts, code)
	default:
		ts.Fatalf("term %s is not known", args[0])
	}
}

func absent(ts *testscript.TestScript, text string, unwanted []string) {
	for _, re := range unwanted {
		if regexp.MustCompile("(?m)" + re).MatchString(text) {
			ts.Fatalf("%q is there:\n%s", re, text)
		}
	}
}

func parseSize(s string) (*pty.Winsize, bool) {
	var size pty.Winsize
	n, err := fmt.Sscanf(s, "%dx%d", &size.Rows, &size.Cols)
	return &size, err == nil && n == 2
}

func startTerminal(ts *testscript.TestScript, args []string) {
	size := &pty.Winsize{Rows: 24, Cols: 80}
	if given, ok := parseSize(args[0]); ok {
		size, args = given, args[1:]
	}
	cmd := command(ts, args)
	if ts.Getenv("TERM") == "" {
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	}
	master, slave, err := pty.Open()
	ts.Check(err)
	ts.Check(pty.Setsize(master, size))
	before, err := term.GetState(int(slave.Fd()))
	ts.Check(err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // stdin is its terminal
	err = cmd.Start()
	err = errors.Join(err, slave.Close())
	ts.Check(err)
	t := &terminal{
		f: master, cmd: cmd, before: before, vt: vt10x.New(vt10x.WithSize(int(size.Cols), int(size.Rows))),
		done: make(chan struct{}), drained: make(chan struct{}),
	}
	go func() { // ends with the process
		defer close(t.done)
		_ = cmd.Wait() // the state says it
	}()
	go func() { // ends when nobody has the terminal open any more
		defer close(t.drained)
		buf := make([]byte, 4096)
		for {
			n, err := t.f.Read(buf)
			t.out.mu.Lock()
			t.out.buf.Write(buf[:n])
			_, _ = t.vt.Write(buf[:n]) // a screen takes everything
			t.out.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	ts.Value(processesKey).(*processes).terminal = t
	ts.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-t.done
		_ = t.f.Close() // and so the reader ends
		<-t.drained
	})
}

// A card draws a frame with one write, and without wrapping, but it may be read
// in pieces.
const frameBegins, frameEnds = "\x1b[?7l", "\x1b[?7h"

// frame is what the screen shows, and whether it is whole: no frame is being
// drawn, or nobody is there any more to go on with it.
func (t *terminal) frame() (screen string, whole bool) {
	select {
	case <-t.drained:
		return t.screen(), true
	default:
	}
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	out := t.out.buf.Bytes()
	return t.shown(), bytes.LastIndex(out, []byte(frameEnds)) >= bytes.LastIndex(out, []byte(frameBegins))
}

// whole waits for a screen that is whole.
func (t *terminal) whole(ts *testscript.TestScript) (screen string) {
	poll(ts, func() (whole bool) {
		screen, whole = t.frame()
		return whole
	}, func() string { return "a frame was begun and not finished:\n" + screen })
	return screen
}

// screen is what a person sees.
func (t *terminal) screen() string {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	return t.shown()
}

// shown is screen with out.mu held.
func (t *terminal) shown() string {
	lines := strings.Split(t.vt.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78])|\r`)

// erased is what a line held before the cursor went back to its beginning and
// cleared it.
var erased = regexp.MustCompile(`[^\n]*\r\x1b\[2?K`)

// text is what was written since the mark, without escapes and what was erased.
func (t *terminal) text() string {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	return escapes.ReplaceAllString(erased.ReplaceAllString(t.out.buf.String()[t.mark:], ""), "")
}

// wait waits until look, which tells also whether what it sees is whole, sees
// all that is wanted.
func (t *terminal) wait(ts *testscript.TestScript, look func() (string, bool), want []string) {
	var seen, missing string
	matches := func() (whole bool) {
		seen, whole = look()
		for _, re := range want {
			if !regexp.MustCompile("(?m)" + re).MatchString(seen) {
				missing = re
				return false
			}
		}
		return whole
	}
	poll(ts, func() bool {
		if matches() {
			return true
		}
		select {
		case <-t.drained:
			if !matches() {
				ts.Fatalf("it ended without showing %q:\n%s", missing, seen)
			}
			return true
		default:
			return false
		}
	}, func() string { return fmt.Sprintf("%q is not shown:\n%s", missing, seen) })
}

func (t *terminal) end(ts *testscript.TestScript, code int) {
	for _, c := range []chan struct{}{t.done, t.drained} {
		select {
		case <-c:
		case <-time.After(patience):
			ts.Fatalf("the program does not end, or leaves the terminal open:\n%s", t.screen())
		}
	}
	after, err := term.GetState(int(t.f.Fd()))
	ts.Check(err)
	ts.Value(processesKey).(*processes).terminal = nil
	t.out.mu.Lock()
	t.mark = 0
	visible := t.vt.CursorVisible()
	t.out.mu.Unlock()
	_, _ = io.WriteString(ts.Stdout(), t.text()) // to memory
	switch got := status(t.cmd.ProcessState); {
	case got != code:
		ts.Fatalf("exit %d, not %d:\n%s", got, code, t.screen())
	case !reflect.DeepEqual(t.before, after):
		ts.Fatalf("the terminal is not as it was:\n%+v\n%+v", t.before, after)
	case !visible:
		ts.Fatalf("the cursor is left hidden")
	}
}
