package cli

import (
	"os"

	"deepseek/internal/config"
)

// TakeEnviron returns the environment of this process and takes the key out of
// the memory that the system shows as /proc/PID/environ: a command that runs as
// the same user could read it there. It is for main, once, before anything else
// looks at the environment; programs that are started get none of it unasked.
func TakeEnviron() []string {
	env := os.Environ() // a copy: what follows leaves it alone
	if _, ok := os.LookupEnv(config.KeyVariable); ok {
		wipeEnviron(config.KeyVariable)
	}
	return env
}
