package search

import (
	"context"
	_ "embed" // the texts
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"deepseek/internal/tool"
)

var (
	//go:embed glob.md
	globText string
	//go:embed glob.json
	globSchema string
)

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Include string `json:"include"`
}

func (e Env) globTool() tool.Tool {
	return tool.Define(tool.Definition{
		Name: "glob", Text: globText, Schema: globSchema,
		Traits: tool.Traits{Parallel: true, ReadOnly: true},
	}, e.glob)
}

func (e Env) glob(ctx context.Context, _ tool.Call, in globArgs) tool.Result {
	if at, why := badGlob(in.Pattern); why != "" {
		return badPattern("pattern", in.Pattern, at, why)
	}
	only, bad := readFilter(in.Include)
	if bad != nil {
		return *bad
	}
	root, err := e.begin(in.Path)
	if err != nil {
		return failed(in.Path, err)
	}
	// The part of the pattern without wildcards leads to where the search
	// starts: nothing else need be looked at.
	pattern := strings.TrimPrefix(strings.TrimRight(in.Pattern, "/"), "./")
	dirsOnly := strings.HasSuffix(in.Pattern, "/")
	base, pattern := doublestar.SplitPattern(pattern)
	above := ""
	if base != "." {
		above = base + "/"
	}
	if base != "." {
		if !filepath.IsAbs(base) && (in.Path != "" || !strings.HasPrefix(base, "~")) {
			base = filepath.Join(root.named, base)
		}
		if root, err = e.begin(base); errors.Is(err, fs.ErrNotExist) {
			return answer(nil, 0, noFiles, 0)
		} else if err != nil {
			return failed(base, err)
		}
	}
	if !root.isDir {
		if doublestar.MatchUnvalidated(pattern, filepath.Base(root.named)) && !dirsOnly && only.takes(filepath.Base(root.named), in.Pattern) {
			return answer([]string{e.shown(root.named)}, 1, "", 0)
		}
		return answer(nil, 0, noFiles, 0)
	}
	depth := depthOf(pattern)
	found := smallest{}
	unread, err := walk(ctx, root.real, func(en entry) bool {
		if doublestar.MatchUnvalidated(pattern, en.rel) && (en.isDir || !dirsOnly) && only.takes(en.name, above+en.rel) {
			path := e.shown(join(root.named, en.rel))
			if en.isDir {
				path += "/"
			}
			found.add(path)
		}
		return en.isDir && strings.Count(en.rel, "/") < depth
	}, nil)
	if err != nil {
		return aborted(ctx)
	}
	lines, total := found.sorted()
	return answer(lines, total, noFiles, unread)
}

const noFiles = "No files match."

func join(dir, rel string) string {
	if dir == "/" {
		return dir + rel
	}
	return dir + "/" + rel
}

// depthOf is how many folders deep a pattern can reach.
func depthOf(pattern string) int {
	_, braced, _ := strings.Cut(pattern, "{")
	if strings.Contains(pattern, "**") || strings.Contains(braced, "/") {
		return 1 << 30
	}
	return strings.Count(pattern, "/")
}

// badGlob finds what is wrong with a pattern: where, in characters from 1, and why.
func badGlob(pattern string) (at int, why string) {
	pos := func(i int) int { return utf8.RuneCountInString(pattern[:i]) + 1 }
	brace := -1
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) {
				return pos(i - 1), "a backslash with nothing after it"
			}
		case '[':
			end := classEnd(pattern, i)
			if end < 0 {
				return pos(i), "a [ without its ]"
			}
			i = end
		case '{':
			if brace < 0 {
				brace = i
			}
			if end := braceEnd(pattern, i); end < 0 {
				return pos(i), "a { without its }"
			}
		case '}':
			if brace < 0 {
				return pos(i), "a } without its {"
			}
		case 0:
			return pos(i), "a NUL byte"
		}
	}
	if pattern == "" {
		return 1, "nothing"
	}
	if !doublestar.ValidatePattern(pattern) {
		for i := range pattern {
			if i > 0 && !doublestar.ValidatePattern(pattern[:i]) {
				return pos(i), "what doublestar patterns do not allow"
			}
		}
		return pos(len(pattern)), "what doublestar patterns do not allow"
	}
	return 0, ""
}

// classEnd is the ] of the class that begins at i, -1 if there is none.
func classEnd(pattern string, i int) int {
	j := i + 1
	if j < len(pattern) && (pattern[j] == '!' || pattern[j] == '^') {
		j++
	}
	for first := true; j < len(pattern); j++ {
		switch {
		case pattern[j] == '\\':
			j++
		case pattern[j] == ']' && !first:
			return j
		}
		first = false
	}
	return -1
}

func braceEnd(pattern string, i int) int {
	depth := 0
	for ; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func badPattern(field, pattern string, at int, why string) tool.Result {
	return tool.Errorf(tool.CodeInvalidArguments, "%s %q has %s at character %d", field, pattern, why, at)
}

// smallest keeps the first lines of an order and counts all. Safe for concurrent use.
type smallest struct {
	mu    sync.Mutex
	lines []string
	total int
}

func (s *smallest) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	s.lines = append(s.lines, line)
	if len(s.lines) > 20*maxLines {
		slices.Sort(s.lines)
		s.lines = s.lines[:maxLines]
	}
}

func (s *smallest) sorted() ([]string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines)
	return s.lines, s.total
}
