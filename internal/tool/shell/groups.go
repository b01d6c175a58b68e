package shell

import (
	"errors"

	"golang.org/x/sys/unix"
)

// groups are those of the process groups that still have a process.
func groups(leaders map[int]bool) []proc {
	var out []proc
	for pid := range leaders {
		if err := unix.Kill(-pid, 0); err == nil || errors.Is(err, unix.EPERM) {
			out = append(out, proc{pid: -pid, session: pid})
		}
	}
	return out
}
