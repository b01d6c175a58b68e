//go:build !linux

package permission

import (
	"errors"
	"runtime"
)

const helperPath = ""

func kernelSupport() (bool, string) {
	return false, runtime.GOOS + " has no sandbox that this program can use"
}

func (s *Sandbox) exec(string, []string, []string) error {
	return errors.ErrUnsupported
}
