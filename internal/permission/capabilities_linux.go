package permission

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// forgone are the rights of root that no sandboxed command has: with them it could look
// into the memory and the environment of processes outside, the key among it, or put
// code into the kernel, around Landlock.
var forgone = []uint{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_BPF,
	unix.CAP_SYS_RAWIO, unix.CAP_SYS_MODULE,
}

// forgoCapabilities keeps what the calling thread starts from ever having them:
// by the bounding set, which a program of root takes them from, and by the
// inheritable set, which outlives that. The thread itself stays as it is.
// An account that may not change its bounding set has nothing there to lose, and an
// old kernel does not know all of them.
func forgoCapabilities() error {
	for _, c := range forgone {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("prctl: %w", err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	before := data
	for _, c := range forgone {
		data[c/32].Inheritable &^= 1 << (c % 32)
	}
	if data == before {
		return nil
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
