//go:build !linux

package permission

import (
	"errors"
	"os/exec"
	"runtime"
)

func kernelSupport() (bool, string) {
	return false, runtime.GOOS + " has no sandbox that this program can use"
}

func (s *Sandbox) start(*exec.Cmd) error { return errors.ErrUnsupported }
