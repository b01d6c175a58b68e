//go:build !linux

package permission

import (
	"errors"
	"os/exec"
	"runtime"
)

func kernelSupport() (bool, string, error) {
	return false, runtime.GOOS + " has no sandbox that this program can use", nil
}

func (s *Sandbox) start(*exec.Cmd) error { return errors.ErrUnsupported }
