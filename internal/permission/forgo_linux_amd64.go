package permission

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// canForgo tells whether forgoDeathSignal is there for this processor.
const canForgo = true

// forgoDeathSignal makes a process that this thread holds before its first
// instruction call prctl(PR_SET_PDEATHSIG, 0), which only the process itself
// can. The call is put in the place of the instructions that come next; they and
// the registers are put back. On an error the process is in no state to go on.
func forgoDeathSignal(pid int) error {
	var before unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &before); err != nil {
		return fmt.Errorf("registers: %w", err)
	}
	regs := before
	at, code := deathCall(&regs)
	was := make([]byte, len(code))
	if _, err := unix.PtracePeekText(pid, at, was); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	if _, err := unix.PtracePokeText(pid, at, code); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	if err := unix.PtraceSetRegs(pid, &regs); err != nil {
		return fmt.Errorf("registers: %w", err)
	}
	if err := unix.PtraceCont(pid, 0); err != nil {
		return fmt.Errorf("continue: %w", err)
	}
	if err := stopped(pid); err != nil {
		return err
	}
	if err := unix.PtraceGetRegs(pid, &regs); err != nil {
		return fmt.Errorf("registers: %w", err)
	}
	if ret := returned(&regs); ret != 0 {
		return fmt.Errorf("prctl: %w", syscall.Errno(-ret))
	}
	if _, err := unix.PtracePokeText(pid, at, was); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	if err := unix.PtraceSetRegs(pid, &before); err != nil {
		return fmt.Errorf("registers: %w", err)
	}
	return nil
}

// stopped waits until the process has run into the breakpoint and stands still.
func stopped(pid int) error {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case info.Code != cldTrapped:
			return unix.ESRCH // killed meanwhile; os/exec reaps it
		}
		return unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil)
	}
}

const cldTrapped = 4 // CLD_TRAPPED, of siginfo

// userCode32 is the code segment of 32-bit programs.
const userCode32 = 0x23

// deathCall sets the registers for prctl(PR_SET_PDEATHSIG, 0): the place of the
// next instruction, and what to put there. A breakpoint follows the call.
func deathCall(regs *unix.PtraceRegs) (at uintptr, code []byte) {
	at = uintptr(regs.Rip)
	regs.Orig_rax = ^uint64(0) // no call is under way that could be begun again
	if regs.Cs == userCode32 {
		const prctl32 = 172
		regs.Rax, regs.Rbx, regs.Rcx = prctl32, unix.PR_SET_PDEATHSIG, 0
		return at, []byte{0xcd, 0x80, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc} // int $0x80; int3
	}
	regs.Rax, regs.Rdi, regs.Rsi = unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0
	return at, []byte{0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc} // syscall; int3
}

func returned(regs *unix.PtraceRegs) int64 { return int64(int32(regs.Rax)) } //nolint:gosec // an error number fits
