//go:build !linux

package shell

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// This system has no subreaper: what leaves the process group of its command
// cannot be found again.

func becomeSubreaper() error { return nil }

func widen(*os.File) {}

func ended(int) bool { return false }

func ownSession() int { return -1 }

func find(sessions map[int]bool, _ func(proc) bool) []proc { return groups(sessions) }

func scan() ([]proc, error) { return nil, nil }

func children() ([]proc, error) { return nil, errors.ErrUnsupported }

func (p proc) mark() string { return "" }

func (p proc) carries(map[string]bool) bool { return false }

func (p proc) signal(s syscall.Signal) { _ = unix.Kill(p.pid, s) }

func aliveSessions(sessions map[int]bool) map[int]bool {
	alive := map[int]bool{}
	for _, p := range groups(sessions) {
		alive[p.session] = true
	}
	return alive
}
