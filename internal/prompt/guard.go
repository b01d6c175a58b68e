package prompt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// GuardCommand is the word that makes this program a guard of the terminal.
const GuardCommand = "terminal-guard"

// A guard is this program once more, with a pipe as standard input, of which the
// process that it guards holds the only other end, and the terminal behind it.
const (
	guardOrders = 0
	guardTTY    = 3
)

// guardWait bounds what the guarded process waits for its guard, which has next to nothing to do.
const guardWait = time.Second

// Guard sees to it that the terminal is as it was before, whatever ends this
// process: SIGKILL and a crash leave nobody in it to do so. A process of its own
// is told before the modes change and after they are back. When its pipe ends in
// between, and the terminal is still as this process had set it, since a shell may
// have set its own modes by then, it sets the old ones.
//
// The guard is started with the first change, beside it: nothing waits for that.
// Without one all goes on as it would. All methods may be called from any
// goroutine, on a nil Guard too; mu guards the fields.
type Guard struct {
	start func(orders, tty *os.File) *exec.Cmd // not yet started; its files are closed after the start

	mu       sync.Mutex
	held     []held        // in the order of the changes
	launched chan struct{} // closed when orders is set or there will be no guard; nil before the first change
	orders   *os.File      // nil while there is no guard
	guard    *os.Process
	ended    chan struct{} // closed when the guard is gone
	closed   bool
}

// held is one change: by whom, the modes before and with it, and whether they are a card's.
type held struct {
	who        any
	sane, ours unix.Termios
	card       bool
}

// NewGuard is a guard that is started by running the command that start makes.
func NewGuard(start func(orders, tty *os.File) *exec.Cmd) *Guard { return &Guard{start: start} }

// hold says that who is about to change the modes.
func (g *Guard) hold(h held) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.index(h.who); i >= 0 {
		g.held[i] = h
	} else {
		g.held = append(g.held, h)
	}
	switch {
	case g.closed:
	case g.launched == nil:
		g.launched = make(chan struct{})
		go g.launch()
	default:
		g.tell()
	}
}

// release says that the modes are what they were before who changed them.
func (g *Guard) release(who any) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.index(who); i >= 0 {
		g.held = slices.Delete(g.held, i, i+1)
		g.tell()
	}
}

func (g *Guard) index(who any) int {
	return slices.IndexFunc(g.held, func(h held) bool { return h.who == who })
}

// launch starts the guard. What it is to know lies in the pipe before it is there.
func (g *Guard) launch() {
	defer close(g.launched)
	tty, err := os.OpenFile(ttyPath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	defer func() { _ = tty.Close() }() // nothing was written
	in, orders, err := os.Pipe()
	if err != nil {
		return
	}
	defer func() { _ = in.Close() }() // as above
	g.mu.Lock()
	g.orders = orders
	g.tell()
	g.mu.Unlock()
	cmd := g.start(in, tty)
	if err := cmd.Start(); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop()
		return
	}
	ended := make(chan struct{})
	go func() { // ends with the guard
		defer close(ended)
		_ = cmd.Wait() // it is gone, however
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard, g.ended = cmd.Process, ended
}

// tell tells the guard what it has to restore. One that does not listen is none. mu is held.
func (g *Guard) tell() {
	var o order
	if n := len(g.held); n > 0 {
		o = order{Held: true, Card: g.held[n-1].card, Sane: g.held[0].sane, Ours: g.held[n-1].ours}
	}
	if g.orders == nil {
		return
	}
	err := g.orders.SetWriteDeadline(time.Now().Add(guardWait))
	if err == nil {
		_, err = g.orders.Write(o.bytes())
	}
	if err != nil {
		g.drop()
	}
}

// drop gives a guard up. mu is held.
func (g *Guard) drop() {
	if g.guard != nil {
		_ = g.guard.Kill() // it may be gone
	}
	if g.orders != nil {
		_ = g.orders.Close() // nobody reads it
		g.orders = nil
	}
}

// Close returns when the guard is gone. With the modes as they were before it has
// nothing to do and is ended on the spot; else it does its work now.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.closed = true
	launched := g.launched
	g.mu.Unlock()
	if launched == nil {
		return
	}
	<-launched
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil { // it could not be started
		return
	}
	if len(g.held) == 0 {
		g.drop()
		<-g.ended
		return
	}
	if g.orders != nil {
		_ = g.orders.Close() // what was written is in the pipe
		g.orders = nil
	}
	timer := time.NewTimer(guardWait)
	defer timer.Stop()
	select {
	case <-g.ended:
	case <-timer.C:
		_ = g.guard.Kill() // it is gone then
		<-g.ended
	}
}

// order is what a guard is told: what to restore, if anything. All are as long as
// one another, and shorter than what a pipe takes at once.
type order struct {
	Held, Card bool
	Sane, Ours unix.Termios
}

func (o order) bytes() []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, o) // to memory, of a fixed size
	return b.Bytes()
}

// StandGuard does the work of a guard, in a process that was started as one. False
// says that this one was not.
func StandGuard() bool {
	var pipe unix.Stat_t
	if unix.Fstat(guardOrders, &pipe) != nil || pipe.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	if _, err := unix.IoctlGetTermios(guardTTY, getModes); err != nil {
		return false
	}
	// What ends or stops the one it guards is not to end or stop the guard.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP)
	if last, ok := lastOrder(pipeEnd{}); ok && last.Held {
		last.restore()
	}
	return true
}

// lastOrder reads to the end. An order that is cut off is none, and nothing is to be done then.
func lastOrder(r io.Reader) (last order, ok bool) {
	buf := make([]byte, binary.Size(order{}))
	for {
		switch _, err := io.ReadFull(r, buf); {
		case errors.Is(err, io.EOF):
			return last, true
		case err != nil:
			return order{}, false
		}
		if _, err := binary.Decode(buf, binary.NativeEndian, &last); err != nil {
			return order{}, false
		}
	}
}

// restore sets the old modes, if those of the dead process still stand.
func (o order) restore() {
	now, err := unix.IoctlGetTermios(guardTTY, getModes)
	if err != nil || !sameModes(*now, o.Ours) {
		return
	}
	for errors.Is(unix.IoctlSetTermios(guardTTY, setModes, &o.Sane), unix.EINTR) {
	}
	if o.Card {
		_, _ = unix.Write(guardTTY, []byte(leaveRaw)) // as in Restore
	}
}

// pipeEnd reads the orders with plain system calls: the end of the pipe is acted on at once,
// before whoever waits for the dead process looks at the terminal.
type pipeEnd struct{}

func (pipeEnd) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(guardOrders, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
