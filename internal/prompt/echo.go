package prompt

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Echo switches whether a terminal shows what is typed while no card asks for it.
// What is typed is kept by the terminal either way, for the next card or for who
// reads after this process.
//
// Off is never forced on a terminal that is another job's now: setting its modes
// would stop this process. All methods may be called from any goroutine, on a nil
// Echo too; mu guards the rest.
type Echo struct {
	f     *os.File
	guard *Guard // shows it where this process cannot any more; may be nil
	mu    sync.Mutex
	off   bool // by us
}

// NewEcho is the switch of the terminal that f is. f stays the caller's. guard may be nil.
func NewEcho(f *os.File, guard *Guard) *Echo { return &Echo{f: f, guard: guard} }

// Off hides what is typed. It may be called again at any time, since a shell
// that this process was stopped under sets the terminal as it likes.
func (e *Echo) Off() { e.set(false) }

// On shows what is typed, if Off has hidden it. Who calls Off owes it.
func (e *Echo) On() { e.set(true) }

// set leaves a terminal that cannot be read or set as it is: there is nothing to
// be done about it, and the work goes on.
func (e *Echo) set(on bool) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if on && !e.off {
		return
	}
	fd := int(e.f.Fd())
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return
	}
	modes, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return
	}
	before := *modes
	shown := modes.Lflag&unix.ECHO != 0
	switch {
	case on:
		modes.Lflag |= unix.ECHO
	case !shown || modes.Lflag&unix.ICANON == 0: // somebody else has hidden it, and will show it
		return
	default:
		modes.Lflag &^= unix.ECHO
		e.guard.hold(held{who: e, sane: before, ours: *modes})
	}
	if unix.IoctlSetTermios(fd, setModes, modes) == nil {
		e.off = !on
	}
	if !e.off {
		e.guard.release(e)
	}
}
