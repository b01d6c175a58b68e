package shell

import (
	"os"
	"path/filepath"
	"strings"

	"deepseek/internal/redact"
)

// markName is the variable by which the processes of a run are known. Its value
// is the family's id, a dot and the number of the call.
const markName = "DEEPSEEK_TOOL_RUN"

// quiet are the variables that keep programs from waiting for a person. With
// no terminal and no input that is most of it: ssh, for one, then never asks.
var quiet = []string{
	"DEEPSEEK_TOOL=1",
	"TERM=dumb", "NO_COLOR=1",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
	"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
	"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never",
	"DEBIAN_FRONTEND=noninteractive",
}

// dropped are variables that would work against them, or give away the key.
var dropped = []string{"DEEPSEEK_API_KEY", "FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "OLDPWD", "PWD", "TMPDIR", "TMP", "TEMP", markName}

// baseEnviron is the environment of all commands of a run: that of the program
// without what holds the key.
func baseEnviron(environ []string, key redact.Key) []string {
	drop := map[string]bool{}
	for _, name := range dropped {
		drop[name] = true
	}
	for _, kv := range quiet {
		name, _, _ := strings.Cut(kv, "=")
		drop[name] = true
	}
	out := make([]string, 0, len(environ)+len(quiet)+3)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !drop[name] && !key.In(value) {
			out = append(out, kv)
		}
	}
	return append(out, quiet...)
}

func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if n, value, ok := strings.Cut(environ[i], "="); ok && n == name {
			return value
		}
	}
	return ""
}

// findShell is bash, where there is none sh.
func findShell(environ []string) string {
	for _, dir := range append([]string{"/bin", "/usr/bin"}, filepath.SplitList(lookup(environ, "PATH"))...) {
		path := filepath.Join(dir, "bash")
		if fi, err := os.Stat(path); err == nil && filepath.IsAbs(path) && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path
		}
	}
	return "/bin/sh"
}
