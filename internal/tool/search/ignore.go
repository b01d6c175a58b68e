package search

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// rules are the patterns of one ignore file, linked to those of the folders
// above it. They never change after they were made.
type rules struct {
	above    *rules
	base     int // length of the folder's path below the top, with its slash
	patterns []pattern
}

// pattern is one line of an ignore file, in the cheapest form that decides it.
type pattern struct {
	text     string
	negated  bool
	dirOnly  bool
	anchored bool // matched against the path below the file's folder, else against the name
	kind     kind
}

type kind uint8

const (
	exact  kind = iota // the text itself
	suffix             // "*" and the text
	glob               // anything else
)

// ignores decides on a path below the top. The innermost file that has a
// matching pattern decides, in it the last one that matches.
func (r *rules) ignores(path, name string, isDir bool) bool {
	for ; r != nil; r = r.above {
		for i := len(r.patterns) - 1; i >= 0; i-- {
			p := &r.patterns[i]
			if p.dirOnly && !isDir {
				continue
			}
			subject := name
			if p.anchored {
				subject = path[r.base:]
			}
			if p.matches(subject) {
				return !p.negated
			}
		}
	}
	return false
}

func (p *pattern) matches(subject string) bool {
	switch p.kind {
	case exact:
		return subject == p.text
	case suffix:
		return strings.HasSuffix(subject, p.text)
	default:
		return doublestar.MatchUnvalidated(p.text, subject)
	}
}

// with adds an ignore file of the folder whose path below the top, with its
// slash, has length base. A file that cannot be read adds nothing.
func (r *rules) with(file string, base int) *rules {
	fi, err := os.Stat(file)
	const most = 1 << 20
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > most {
		return r
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return r
	}
	patterns := parseIgnore(content)
	if len(patterns) == 0 {
		return r
	}
	return &rules{above: r, base: base, patterns: patterns}
}

func parseIgnore(content []byte) []pattern {
	var out []pattern
	sc := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))))
	sc.Buffer(nil, len(content)+1)
	for sc.Scan() {
		if p, ok := parsePattern(sc.Text()); ok {
			out = append(out, p)
		}
	}
	return out
}

func parsePattern(line string) (pattern, bool) {
	line = trimUnescaped(line)
	var p pattern
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	if strings.HasPrefix(line, "!") {
		p.negated = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly = true
		line = strings.TrimRight(line, "/")
	}
	if rest, ok := strings.CutPrefix(line, "**/"); ok && !strings.Contains(rest, "/") {
		line = rest // at any depth: the same as a bare name
	}
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	rest, starred := strings.CutPrefix(line, "*")
	switch {
	case !strings.ContainsAny(line, `*?[\{}`):
		p.kind, p.text = exact, line
	case starred && !p.anchored && !strings.ContainsAny(rest, `*?[\{}`):
		p.kind, p.text = suffix, rest
	default:
		p.kind, p.text = glob, toDoublestar(line)
		if !doublestar.ValidatePattern(p.text) {
			return p, false // git ignores such lines too
		}
	}
	return p, true
}

// trimUnescaped drops white space at the end, but for a space after a backslash.
func trimUnescaped(line string) string {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t") {
		head := line[:len(line)-1]
		escapes := len(head) - len(strings.TrimRight(head, `\`))
		if escapes%2 == 1 {
			break
		}
		line = head
	}
	return line
}

// toDoublestar escapes the braces, which mean nothing in an ignore file, and
// makes a ** that stands for no folders of its own a *.
func toDoublestar(line string) string {
	var parts []string
	for part := range strings.SplitSeq(line, "/") {
		if part != "**" {
			for strings.Contains(part, "**") {
				part = strings.ReplaceAll(part, "**", "*")
			}
		}
		part = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `\\`, `\\`, "{", `\{`, "}", `\}`).Replace(part)
		parts = append(parts, part)
	}
	out := strings.Join(parts, "/")
	if strings.HasSuffix(out, "/**") {
		out += "/*" // what is inside, not the folder itself
	}
	return out
}

// above collects the rules that hold for a folder from outside it: those of
// the work tree's exclude file and of the folders from its top down. It returns
// the folder's path below the top as well. Without a work tree the folder is
// the top.
func above(dir string) (*rules, string) {
	top := dir
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		up := filepath.Dir(top)
		if up == top {
			return nil, ""
		}
		top = up
	}
	var r *rules
	r = r.with(filepath.Join(gitDir(top), "info", "exclude"), 0)
	below, err := filepath.Rel(top, dir)
	if err != nil || below == "." {
		return r, ""
	}
	at, base := top, 0
	for part := range strings.SplitSeq(below, string(filepath.Separator)) {
		r = r.with(filepath.Join(at, ".gitignore"), base)
		at = filepath.Join(at, part)
		base += len(part) + 1
	}
	return r, filepath.ToSlash(below)
}

// gitDir is the repository's folder of a work tree. A linked work tree has a
// file that names its own, and there one that names the common one.
func gitDir(top string) string {
	dir := filepath.Join(top, ".git")
	if target, ok := strings.CutPrefix(firstLine(dir), "gitdir:"); ok {
		dir = from(top, strings.TrimSpace(target))
		if common := firstLine(filepath.Join(dir, "commondir")); common != "" {
			dir = from(dir, common)
		}
	}
	return dir
}

func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// firstLine of a small file, "" of anything else.
func firstLine(file string) string {
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 4096 {
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimRight(line, "\r")
}
