//go:build linux && !amd64

package permission

import "errors"

// canForgo tells whether forgoDeathSignal is there for this processor.
const canForgo = false

func forgoDeathSignal(int) error { return errors.ErrUnsupported }
