package permission

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// linkedGit is what a linked work tree (git worktree) has outside of itself.
type linkedGit struct {
	own    string // its own directory, below common
	common string // the repository's
}

// linkedTo reads where the work tree ws says that its git directories lie. A
// file in ws, which tools may write, must not make a folder of its choice
// writable. So both have to look as git leaves them: its own lies in the
// common one, as worktrees/NAME, and the record there points back at ws; none of
// that can be put in place by whoever may not write there.
func linkedTo(ws string) *linkedGit {
	pointer := filepath.Join(ws, ".git")
	dir, ok := strings.CutPrefix(readLine(pointer), "gitdir: ")
	if !ok {
		return nil
	}
	dir = absolute(dir, ws)
	own, err := resolve(dir)
	if err != nil || own.missing > 0 || within(own.abs, ws) {
		return nil
	}
	if back := readLine(filepath.Join(own.abs, "gitdir")); back == "" || !onlyName(absolute(back, own.abs), pointer) {
		return nil
	}
	worktrees := filepath.Dir(own.abs)
	g := &linkedGit{own: own.abs, common: filepath.Dir(worktrees)}
	named := readLine(filepath.Join(own.abs, "commondir"))
	if named == "" || filepath.Base(worktrees) != "worktrees" {
		return nil
	}
	if r, err := resolve(absolute(named, own.abs)); err != nil || r.missing > 0 || r.abs != g.common {
		return nil
	}
	if !isGitDir(g.common) || !isHead(filepath.Join(g.own, "HEAD")) {
		return nil
	}
	return g
}

// gitOutside is the git directory of a work tree that has it outside of itself:
// a submodule, or one with a separate git directory. It holds the configuration and
// the hooks directly, so no part that git needs for a commit can be opened alone.
func gitOutside(ws string) string {
	dir, ok := strings.CutPrefix(readLine(filepath.Join(ws, ".git")), "gitdir: ")
	if !ok {
		return ""
	}
	r, err := resolve(absolute(dir, ws))
	if err != nil || r.missing > 0 || within(r.abs, ws) || !isGitDir(r.abs) {
		return ""
	}
	return r.abs
}

// isGitDir tells whether git itself would take the folder for a repository.
func isGitDir(dir string) bool {
	return isHead(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
}

func isHead(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && (fi.Mode().IsRegular() || fi.Mode()&os.ModeSymlink != 0)
}

// gitPlaces are the folders that a command which changes the repository is given:
// what git writes to for a commit, a branch, a stash or a fetch. The rest of the common
// directory stays closed: its configuration and hooks say what programs run.
// There are none where one of them overlaps with a place that tools never write
// to, or would hold the home or the workspace.
func (p *Policy) gitPlaces(l *look) []string {
	if p.git == nil {
		return nil
	}
	out := []string{p.git.own}
	for _, name := range []string{"objects", "refs", "logs"} {
		dir := filepath.Join(p.git.common, name)
		r, err := resolve(dir)
		if err != nil || r.abs != dir {
			continue // a link: what it leads to is not git's own
		}
		if r.missing == 0 && !r.info.IsDir() {
			continue
		}
		out = append(out, dir)
	}
	for _, dir := range out {
		if _, ok := l.overlap(dir); ok || holds(dir, p.userHome) || holds(dir, p.workspace) {
			return nil
		}
	}
	return out
}

// holds tells whether path, which may be "", is dir or lies in it.
func holds(dir, path string) bool {
	if path == "" {
		return false
	}
	r, err := resolve(path)
	return err != nil || within(r.abs, dir)
}

// makeReadyForGit makes the folder of logs, which a bare repository does not
// have until a linked work tree of it commits; git may not make it itself. That
// it cannot be made is git's to say.
func (p *Policy) makeReadyForGit(places []string) {
	for _, dir := range places {
		if dir == filepath.Join(p.git.common, "logs") {
			_ = os.Mkdir(dir, 0o777)
		}
	}
}

// onlyName tells whether both are names of one file that has no third.
func onlyName(a, b string) bool {
	fa, erra := os.Lstat(a)
	fb, errb := os.Lstat(b)
	if erra != nil || errb != nil || !os.SameFile(fa, fb) {
		return false
	}
	st, ok := fa.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readLine is the first line of a small regular file, "" where there is none.
func readLine(path string) string {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<16 {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimRight(line, "\r")
}
