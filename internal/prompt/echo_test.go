package prompt

import (
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TestEchoOfAnotherJobsTerminal: the modes of a terminal that this process is not
// in the foreground of are left alone, and no switch is no failure.
func TestEchoOfAnotherJobsTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Close() }()
	defer func() { _ = slave.Close() }()
	e := NewEcho(slave, nil)
	e.Off()
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), getModes)
	if err != nil || modes.Lflag&unix.ECHO == 0 {
		t.Errorf("echo was switched off: %v", err)
	}
	e.On()
	var none *Echo
	none.Off()
	none.On()
}
