package prompt

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// The rules of the terminal:
//
//   - It is opened apart from standard input, on a description of its own, so that
//     making it non-blocking reaches nobody else's.
//   - Between Start and Stop it is in the mode asked for, one goroutine reads it,
//     and signals are listened to. Before and after, none of that is true. Stop
//     returns when the goroutine is gone and the modes are back.
//   - A byte that was read and not used is kept for the next card. Nothing typed is
//     ever flushed away, neither by the change of mode nor at the end.
//   - The modes, the cursor and the bracketing of pastes are restored on every way out: Stop, Suspend, and Restore, which
//     anyone may call at any time. Signals that end the process are the caller's, who
//     ends the card's context.
//   - What ends the process without a word (SIGKILL, a crash) leaves it to the guard.
//   - To stop (Ctrl+Z) the modes are restored first, and taken again when the process
//     goes on, which SIGCONT tells. SIGTSTP from outside is not listened to: the runtime
//     never gives a stop signal back, so Ctrl+Z would be dead for the rest of the run. The
//     process then stops as it is, shells set their own modes, and SIGCONT brings the
//     card's back.
//   - Nothing is ever asked of the terminal: no cursor position, no colours.

// Sequences that go with the raw mode: pastes come in brackets; and all that a card may have
// left set is set back.
const (
	enterRaw = "\x1b[?2004h"
	leaveRaw = "\x1b[?2004l\x1b[?7h\x1b[0m\x1b[?25h"
)

// Terminal is what a card needs. One card at a time calls it, from one goroutine.
type Terminal interface {
	// Start takes the terminal for a card: raw, or with its line discipline as it is.
	Start(raw bool) error
	// Stop gives it back.
	Stop() error
	// Ready is all that was kept and all that lies there now. It never blocks.
	Ready() []byte
	// Input yields what is typed while started. An error in it ends the terminal.
	Input() <-chan Input
	// Keep takes back bytes that were not used; they come first in the next Ready.
	Keep([]byte)
	Write([]byte) (int, error)
	Size() (cols, rows int)
	// Signals yields SIGWINCH and SIGCONT while started.
	Signals() <-chan os.Signal
	// Suspend stops the process and its group, as Ctrl+Z does, and returns when it goes on, as
	// Resume does.
	Suspend() error
	// Resume takes the terminal again after the process was stopped. It fails if the process
	// goes on in the background.
	Resume() error
	// Foreground says whether this process may use the terminal now.
	Foreground() bool
}

// Input is a piece of what was typed.
type Input struct {
	Bytes []byte
	Err   error
}

// TTY is the controlling terminal. Its methods follow Terminal's rule of one
// caller; Restore alone may be called from anywhere. The mutex guards the modes.
type TTY struct {
	in      source
	fd      int
	input   chan Input
	signals chan os.Signal
	kept    []byte // the reading goroutine's while it runs, else the caller's
	raw     bool   // the mode asked for by Start
	stop    chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	cooked *unix.Termios // what to restore; nil while nothing was changed
	guard  *Guard        // restores it where this process cannot any more; may be nil
}

// HasTTY tells whether a terminal controls this process. Without one nobody can be
// asked, even where the standard streams are terminals, as they may be in a container.
func HasTTY() bool {
	f, err := os.OpenFile(ttyPath, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	_, err = unix.IoctlGetTermios(int(f.Fd()), getModes) // the name may lead elsewhere
	return errors.Join(err, f.Close()) == nil
}

const ttyPath = "/dev/tty"

// OpenTTY opens the controlling terminal. The caller closes it. guard may be nil.
func OpenTTY(guard *Guard) (*TTY, error) {
	in, fd, err := openSource(ttyPath)
	if err != nil {
		return nil, fmt.Errorf("no terminal to ask on: %w", err)
	}
	return &TTY{in: in, fd: fd, input: make(chan Input), signals: make(chan os.Signal, 8), guard: guard}, nil
}

// Close closes a stopped terminal.
func (t *TTY) Close() error { return t.in.Close() }

// Start implements Terminal.
func (t *TTY) Start(raw bool) error {
	t.raw = raw
	if raw {
		if err := t.makeRaw(); err != nil {
			return fmt.Errorf("make the terminal raw: %w", err)
		}
	}
	t.listen()
	t.startReading()
	return nil
}

// Stop implements Terminal.
func (t *TTY) Stop() error {
	signal.Stop(t.signals)
	t.stopReading()
	return t.Restore()
}

func (t *TTY) listen() {
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
}

func (t *TTY) makeRaw() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, err := unix.IoctlGetTermios(t.fd, getModes)
	if err != nil {
		return err
	}
	if t.cooked != nil {
		old = t.cooked
	}
	raw := rawModes(*old)
	t.guard.hold(held{who: t, sane: *old, ours: raw, card: true})
	if err := unix.IoctlSetTermios(t.fd, setModes, &raw); err != nil {
		if t.cooked == nil {
			t.guard.release(t)
		}
		return err
	}
	t.cooked = old
	_, err = t.in.Write([]byte(enterRaw))
	return err
}

// Restore brings the modes back, if they were changed and are still this process's. Safe from any goroutine, more than once.
func (t *TTY) Restore() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cooked == nil {
		return nil
	}
	if !t.Foreground() { // the modes are somebody else's now; setting them would stop the process
		t.cooked = nil
		t.guard.release(t)
		return nil
	}
	err := unix.IoctlSetTermios(t.fd, setModes, t.cooked)
	if err != nil && !errors.Is(err, unix.EIO) { // EIO: the terminal is gone, and its modes with it
		return fmt.Errorf("restore the terminal: %w", err)
	}
	t.cooked = nil
	_, _ = t.in.Write([]byte(leaveRaw)) // a terminal that takes no bytes shows nothing either
	t.guard.release(t)
	return nil
}

func (t *TTY) startReading() {
	t.stop, t.done = make(chan struct{}), make(chan struct{})
	go t.read(t.stop, t.done)
}

func (t *TTY) stopReading() {
	if t.stop == nil {
		return
	}
	close(t.stop)
	t.in.Interrupt()
	<-t.done
	t.in.Rearm()
	t.stop = nil
}

// read hands on what is typed until it is stopped; what it could not hand on is kept.
func (t *TTY) read(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := t.in.Read(buf)
		if errors.Is(err, errInterrupted) {
			return
		}
		in := Input{Bytes: append([]byte(nil), buf[:n]...), Err: err}
		select {
		case t.input <- in:
		case <-stop:
			t.kept = append(t.kept, in.Bytes...)
			return
		}
		if err != nil {
			return
		}
	}
}

// Ready implements Terminal.
func (t *TTY) Ready() []byte {
	reading := t.stop != nil
	t.stopReading()
	b := t.kept
	t.kept = nil
	buf := make([]byte, 4096)
	for {
		n := t.in.Available(buf)
		b = append(b, buf[:n]...)
		if n < len(buf) {
			break
		}
	}
	if reading {
		t.startReading()
	}
	return b
}

// Keep implements Terminal. It is called while nothing reads, or the reader is joined first.
func (t *TTY) Keep(b []byte) {
	if len(b) == 0 {
		return
	}
	reading := t.stop != nil
	t.stopReading()
	t.kept = append(append([]byte(nil), b...), t.kept...)
	if reading {
		t.startReading()
	}
}

// Input implements Terminal.
func (t *TTY) Input() <-chan Input { return t.input }

// Signals implements Terminal.
func (t *TTY) Signals() <-chan os.Signal { return t.signals }

// Write implements Terminal.
func (t *TTY) Write(b []byte) (int, error) { return t.in.Write(b) }

// Size implements Terminal. A terminal that does not know its size counts as 80×24.
func (t *TTY) Size() (cols, rows int) {
	cols, rows, err := term.GetSize(t.fd)
	if err != nil || cols <= 0 || rows <= 0 {
		return 80, 24
	}
	return cols, rows
}

// Foreground implements Terminal.
func (t *TTY) Foreground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// stopGrace is how long a stop may take to come. A stop signal to a group that no
// shell controls is discarded, and nothing tells so.
const stopGrace = 500 * time.Millisecond

// Suspend implements Terminal.
func (t *TTY) Suspend() error {
	signal.Stop(t.signals)
	t.stopReading()
	if err := t.Restore(); err != nil {
		return err
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return fmt.Errorf("stop the process: %w", err)
	}
	// The clock runs on while the process is stopped: the first timer may be over when it
	// goes on, the second leaves SIGCONT the time to arrive.
	for range 2 {
		timer := time.NewTimer(stopGrace / 2)
		select {
		case <-goesOn:
			timer.Stop()
			return t.Resume()
		case <-timer.C:
		}
	}
	return t.Resume()
}

// Resume implements Terminal.
func (t *TTY) Resume() error {
	if !t.Foreground() {
		return errBackground
	}
	if t.stop != nil { // stopped from outside: what is remembered stays the cooked state
		if err := t.Restore(); err != nil || !t.raw {
			return err
		}
		return t.makeRaw()
	}
	return t.Start(t.raw)
}
