package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// commandLine is what the syntax of a command tells.
type commandLine struct {
	text       string
	words      []string // of a simple command of literal words; else nil
	changesGit bool     // calls git in a way that writes to its directory
}

// parse never fails: what bash will not read either is no simple command.
func parse(command string) commandLine {
	line := commandLine{text: strings.TrimSpace(command)}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return line
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && changesGit(call.Args) {
			line.changesGit = true
		}
		return true
	})
	if len(file.Stmts) != 1 {
		return line
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 || len(call.Assigns) > 0 {
		return line
	}
	words := make([]string, 0, len(call.Args))
	for _, arg := range call.Args {
		w, ok := literal(arg)
		if !ok {
			return line
		}
		words = append(words, w)
	}
	line.words = words
	return line
}

// literal is a word in which the shell runs and expands nothing but file names.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString("'" + part.Value + "'")
		case *syntax.DblQuoted:
			b.WriteByte('"')
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(lit.Value)
			}
			b.WriteByte('"')
		default:
			return "", false
		}
	}
	return b.String(), true
}

var gitChanges = []string{
	"add", "am", "apply", "bisect", "branch", "checkout", "cherry-pick", "clean", "commit", "config", "fetch", "gc", "init", "maintenance", "merge", "mv", "notes",
	"pull", "push", "rebase", "remote", "reset", "restore", "revert", "rm", "sparse-checkout", "stash", "submodule", "switch", "tag", "update-index", "update-ref", "worktree",
}

func changesGit(args []*syntax.Word) bool {
	if len(args) == 0 || path.Base(args[0].Lit()) != "git" {
		return false
	}
	skip := false // the value of the option before
	for _, arg := range args[1:] {
		w := arg.Lit()
		switch {
		case skip:
			skip = false
		case w == "-C" || w == "-c":
			skip = true
		case strings.HasPrefix(w, "-"):
		default:
			return slices.Contains(gitChanges, w)
		}
	}
	return false
}

// runners run what their arguments say, so that a beginning of such a command
// tells nothing about the rest of it.
var runners = []string{
	".", "awk", "bash", "builtin", "bun", "command", "dash", "deno", "doas", "env", "eval", "exec", "find", "fish", "ksh", "lua", "nice", "node", "nohup", "npx", "parallel", "perl",
	"php", "python", "python3", "ruby", "setsid", "sh", "source", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "uvx", "watch", "xargs", "zsh",
}

var (
	programName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`) })
	subcommand  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]*$`) })
)

// grant is what "yes, for this session" covers: commands that begin with these
// words, or this one alone. The zero value covers nothing.
type grant struct {
	text  string // as the person is shown it
	words []string
	exact bool
}

// offer is the grant that a person can give with a yes to this command: a
// program and its subcommand, else the very command. What is not simple has none.
func (l commandLine) offer() grant {
	switch {
	case len(l.words) == 0:
		return grant{}
	case len(l.words) > 1 && programName().MatchString(l.words[0]) && subcommand().MatchString(l.words[1]) && !slices.Contains(runners, l.words[0]):
		return grant{text: l.words[0] + " " + l.words[1], words: l.words[:2]}
	default:
		return grant{text: l.text, words: l.words, exact: true}
	}
}

func (g grant) covers(l commandLine) bool {
	if len(g.words) == 0 || len(l.words) < len(g.words) || g.exact && len(l.words) != len(g.words) {
		return false
	}
	return slices.Equal(g.words, l.words[:len(g.words)])
}

// grants are the commands that a person has allowed for the session. They are
// kept in memory only: a resume asks again. mu owns list.
type grants struct {
	mu   sync.Mutex
	list []grant
}

func (g *grants) add(one grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, one)
}

func (g *grants) cover(l commandLine) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.list, func(one grant) bool { return one.covers(l) })
}
