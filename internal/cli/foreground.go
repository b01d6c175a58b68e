package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// foregroundGrace is how long a program may take to give the terminal back.
const foregroundGrace = 2 * time.Second

// foreground is a program that shares this one's process group and terminal, a
// pager or an editor, and what may end it from here. What the keyboard's signals
// mean is the program's to say; the others end both, and leave the terminal as it
// was before the program.
//
// One goroutine, which ends with the program, reads the signals.
type foreground struct {
	cmd      *exec.Cmd
	got      chan os.Signal
	keyboard []os.Signal // left to the program
	restore  func()
	ended    chan struct{}
	by       chan foregroundEnd
}

// foregroundEnd is what came of it.
type foregroundEnd struct {
	err         error // of the program
	signal      error // by which it was ended from here; nil if by none
	interrupted bool  // the keyboard's signal came while it ran
}

// startForeground starts the program. The caller owes a wait.
func (a *App) startForeground(cmd *exec.Cmd, keyboard ...os.Signal) (*foreground, error) {
	f := &foreground{
		cmd: cmd, got: make(chan os.Signal, 4), keyboard: keyboard, restore: a.keepTerminal(),
		ended: make(chan struct{}), by: make(chan foregroundEnd, 1),
	}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(f.got, sig)
		}
	}
	if err := cmd.Start(); err != nil {
		signal.Stop(f.got)
		return nil, err
	}
	go func() { f.by <- f.guard() }()
	return f, nil
}

// wait returns when the program has ended.
func (f *foreground) wait() foregroundEnd {
	err := f.cmd.Wait()
	close(f.ended)
	end := <-f.by
	end.err = err
	if end.signal != nil {
		f.restore()
	}
	signal.Stop(f.got)
	return end
}

// guard ends the program on a signal other than the keyboard's.
func (f *foreground) guard() (end foregroundEnd) {
	for {
		var sig os.Signal
		select {
		case <-f.ended:
			return end
		case sig = <-f.got:
		}
		if sig == syscall.SIGINT || f.leaves(sig) {
			end.interrupted = end.interrupted || sig == syscall.SIGINT
			continue
		}
		_ = f.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		t := time.NewTimer(foregroundGrace)
		defer t.Stop()
		select {
		case <-f.ended:
		case <-t.C:
			_ = f.cmd.Process.Kill()
			<-f.ended
		}
		end.signal = Signal{sig.(syscall.Signal)}
		return end
	}
}

func (f *foreground) leaves(sig os.Signal) bool {
	return slices.Contains(f.keyboard, sig)
}

// plainScreen takes back what a program that was ended in the midst of its work
// can have set: the other screen, paste brackets, the mouse, keypad keys, a hidden
// cursor, colours.
const plainScreen = "\x1b[?1047l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1l\x1b>\x1b[?25h\x1b[m\r\n"

// keepTerminal returns what makes the terminal of the streams as it is now. It
// does nothing where there is none, or while another group has it: whose it is
// then has set it for itself.
func (a *App) keepTerminal() (restore func()) {
	for _, s := range []any{a.streams.Out, a.streams.In, a.streams.Err} {
		file, ok := s.(*os.File)
		if !ok {
			continue
		}
		fd := int(file.Fd())
		state, err := term.GetState(fd)
		if err != nil {
			continue
		}
		return func() {
			// A terminal that was hung up refuses: there is nothing to mend then.
			group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
			if err != nil || group != unix.Getpgrp() {
				return
			}
			if now, err := term.GetState(fd); err == nil && *now != *state && term.Restore(fd, state) == nil {
				_, _ = file.WriteString(plainScreen)
			}
		}
	}
	return func() {}
}
