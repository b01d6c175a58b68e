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

// located makes the commands of a general hint mean the same home and directory
// as this invocation, of which the words of the hint know nothing.
func (a *App) located(hint string) string {
	home, err := a.Home()
	if err != nil {
		return hint
	}
	place := strings.TrimPrefix(a.command(home), "deepseek")
	dir := ""
	if a.global.cwd != "" {
		if cwd, err := a.Cwd(); err == nil {
			dir = " --cwd " + quote(cwd)
		}
	}
	config := place
	if a.global.config != "" {
		if file, err := filepath.Abs(a.global.config); err == nil {
			config += " --config " + quote(file)
		}
	}
	for _, c := range []struct{ command, place string }{
		{"deepseek config edit", config},
		{"deepseek run -c", place + dir},
		{"deepseek show last", place + dir},
		{"deepseek sessions", place},
		{"deepseek questions", place},
	} {
		before, after, found := strings.Cut(hint, c.command)
		if found && (after == "" || strings.ContainsAny(after[:1], " :;`\n")) && !strings.Contains(after, " --home ") {
			return before + c.command + c.place + after
		}
	}
	return hint
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
