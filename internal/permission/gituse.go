package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// gitUse is what a call of git does to its directory, the most important last.
type gitUse int

const (
	gitReads       gitUse = iota // or is no call of git
	gitNeedsClosed               // changes what stays closed in any case: it would fail after a yes too
	gitChanges                   // changes something else
)

// The subcommands that write. Those that can do either are told apart below.
var gitWrites = []string{
	"add", "am", "apply", "bisect", "branch", "checkout", "cherry-pick", "clean", "commit", "commit-tree", "config", "fast-import", "fetch", "filter-branch", "gc", "hash-object", "init",
	"maintenance", "merge", "mktag", "mktree", "mv", "notes", "pack-refs", "pull", "push", "read-tree", "rebase", "reflog", "remote", "replace", "reset", "restore", "revert", "rm",
	"sparse-checkout", "stash", "submodule", "switch", "symbolic-ref", "tag", "unpack-objects", "update-index", "update-ref", "worktree", "write-tree",
}

// useOfGit looks at the words of one command.
func useOfGit(args []*syntax.Word) gitUse {
	if len(args) == 0 || path.Base(args[0].Lit()) != "git" {
		return gitReads
	}
	words := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		w, ok := literal(arg)
		if !ok {
			w = "?" // whatever it is, it is something
		}
		if n := len(w); n > 1 && (w[0] == '\'' || w[0] == '"') && w[n-1] == w[0] {
			w = w[1 : n-1]
		}
		words = append(words, w)
	}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-C" || w == "-c":
			i++ // its value
		case strings.HasPrefix(w, "-"):
		case !slices.Contains(gitWrites, w):
			return gitReads
		default:
			return useOfSubcommand(w, words[i+1:])
		}
	}
	return gitReads
}

// useOfSubcommand is for one of gitWrites.
func useOfSubcommand(name string, args []string) gitUse {
	var options, others []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") && a != "-" {
			option, _, _ := strings.Cut(a, "=")
			if strings.HasPrefix(option, "-n") && strings.Trim(option[2:], "0123456789") == "" {
				option = "-n" // with a number
			}
			options = append(options, option)
		} else {
			others = append(others, a)
		}
	}
	first := ""
	if len(others) > 0 {
		first = others[0]
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(names, o) })
	}
	only := func(names ...string) bool {
		return !slices.ContainsFunc(options, func(o string) bool { return !slices.Contains(names, o) })
	}
	use := gitChanges
	switch name {
	case "branch", "tag":
		use = useOfRefs(name, len(others) > 0, has, only)
	case "config":
		use = gitNeedsClosed
		reads := has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l") || first == "get" || first == "list"
		writes := has("--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section", "--edit", "-e")
		if has("--worktree") {
			use = gitChanges
		}
		if reads || len(others) == 1 && !writes && first != "edit" {
			use = gitReads
		}
	case "remote":
		switch {
		case first == "" || first == "show" || first == "get-url":
			use = gitReads
		case first != "update":
			use = gitNeedsClosed
		}
	case "worktree":
		use = gitNeedsClosed
		if first == "list" {
			use = gitReads
		}
	case "submodule":
		switch first {
		case "", "status", "summary", "foreach":
			use = gitReads
		case "add", "init", "deinit", "sync", "set-url", "set-branch":
			use = gitNeedsClosed
		}
	case "stash":
		switch first {
		case "list", "show":
			use = gitReads
		case "drop", "clear":
			use = gitNeedsClosed
		}
	case "notes":
		if first == "" || first == "list" || first == "show" {
			use = gitReads
		}
	case "bisect":
		if first == "log" || first == "terms" {
			use = gitReads
		}
	case "reflog":
		if first != "expire" && first != "delete" {
			use = gitReads
		}
	case "symbolic-ref":
		if len(others) == 1 && !has("-d", "--delete") {
			use = gitReads
		}
	case "hash-object":
		if !has("-w") {
			use = gitReads
		}
	case "sparse-checkout":
		if first == "list" {
			use = gitReads
		}
	case "gc", "maintenance", "pack-refs", "init":
		use = gitNeedsClosed
	case "apply":
		if !has("--index", "--cached", "-3", "--3way") {
			use = gitReads // of the repository; it changes files
		}
	}
	return use
}

// useOfRefs is for git branch and git tag, which list, make and remove.
func useOfRefs(name string, named bool, has, only func(...string) bool) gitUse {
	lists := has("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current") || name == "tag" && has("-n", "-l") || name == "branch" && has("-l")
	looks := only(
		"--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current", "-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose",
		"--sort", "--format", "--column", "--no-column", "--color", "--no-color", "--abbrev", "--no-abbrev", "-i", "--ignore-case", "-n",
	)
	switch {
	case looks && (lists || !named):
		return gitReads
	case has("-d", "-D", "--delete"),
		name == "branch" && has("-m", "-M", "--move", "-u", "--set-upstream-to", "--unset-upstream", "--edit-description"):
		return gitNeedsClosed
	}
	return gitChanges
}
