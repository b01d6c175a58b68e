package cli

import (
	"path/filepath"
	"strings"
)

// command is a command line of this program, shell-quoted; --home is added
// where the home is not the usual one.
func (a *App) command(home string, words ...string) string {
	line := "deepseek"
	for _, w := range words {
		line += " " + quote(w)
	}
	if usual := a.Getenv("HOME"); usual == "" || home != filepath.Join(usual, ".deepseek") {
		line += " --home " + quote(home)
	}
	return line
}

// quote makes one word of a POSIX shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("_./:=@%+,-", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// answerCommand is the command that answers a question of a session. A call id
// that looks like a flag is kept from being read as one.
func (a *App) answerCommand(home, ref, callID string) string {
	if !strings.HasPrefix(callID, "-") {
		return a.command(home, "answer", ref, callID)
	}
	return a.command(home, "answer", ref) + " -- " + quote(callID)
}
