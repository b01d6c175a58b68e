package permission

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startHeld starts a command that stands still until the calling thread, which
// its goroutine must be locked to, has ended.
//
// Nor may it outlive a sudden end of this program while it is held: it asks
// to be traced by whoever is its parent, and were this program killed just before
// that, init would be, which never lets go of anything. Therefore it first asks
// to be killed with its parent, and is freed of that when it stands still. The
// parent in this is the thread.
func startHeld(cmd *exec.Cmd) (err error) {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Ptrace = true
	if canForgo {
		attr.Pdeathsig = unix.SIGKILL
	}
	cmd.SysProcAttr = &attr
	// A traced process stops at any signal. One that came before the program is
	// loaded would stop it while this thread is suspended until it is, and with
	// the thread the whole runtime. So they wait until then. A thread passes on
	// what it blocks.
	mask, err := blockSignals()
	if err != nil {
		return err
	}
	err = cmd.Start()
	if merr := unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil); err == nil && merr != nil {
		return letGo(cmd, merr)
	}
	if err != nil {
		return err
	}
	// It stops on a SIGTRAP of its own when the program is loaded. Taking note of
	// that takes the signal away; else it would be killed by it later.
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WSTOPPED, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && canForgo {
			err = forgoDeathSignal(cmd.Process.Pid)
		}
		if err == nil {
			err = setMask(cmd.Process.Pid, &mask)
		}
		if err == nil || errors.Is(err, unix.ECHILD) || errors.Is(err, unix.ESRCH) {
			return nil // where it was killed already, Wait will tell
		}
		return letGo(cmd, err)
	}
}

// letGo ends a command that cannot be held: it is never let go of alive. What is
// left is that of a start that failed.
func letGo(cmd *exec.Cmd, err error) error {
	err = errors.Join(fmt.Errorf("the command was not run, it could not be held: %w", err), cmd.Process.Kill(), cmd.Wait())
	cmd.Process = nil
	return err
}

// blockSignals makes all signals wait for the calling thread but the one that a
// traced program stops on, and returns what was blocked before.
func blockSignals() (before unix.Sigset_t, err error) {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	const bits = int(unsafe.Sizeof(all.Val[0])) * 8
	n := int(unix.SIGTRAP) - 1
	all.Val[n/bits] &^= 1 << (n % bits)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return before, fmt.Errorf("rt_sigprocmask: %w", err)
	}
	return before, nil
}

// setMask sets what a process that this thread holds blocks.
func setMask(pid int, mask *unix.Sigset_t) error {
	const size = 8 // of the kernel's set
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETSIGMASK, uintptr(pid), size, uintptr(unsafe.Pointer(mask)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
