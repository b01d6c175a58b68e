package cli

import (
	"os"
	"strings"
	"unsafe"

	"deepseek/internal/config"
)

// TakeEnviron returns the environment of this process and takes the key out of
// the memory that the system shows as /proc/PID/environ: a command that runs as
// the same user could read it there. It is for main, once, before anything else
// looks at the environment; programs that are started get none of it unasked.
func TakeEnviron() []string {
	env := os.Environ()
	taken := make([]string, len(env))
	for i, kv := range env {
		taken[i] = strings.Clone(kv)
		if name, value, ok := strings.Cut(kv, "="); ok && name == config.KeyVariable && value != "" {
			// The strings of the runtime are the block that the kernel laid out: it is writable,
			// and nobody else reads this variable again.
			clear(unsafe.Slice(unsafe.StringData(value), len(value)))
		}
	}
	return taken
}
