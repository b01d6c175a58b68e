package search

import (
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"deepseek/internal/tool"
)

var (
	//go:embed grep.md
	grepText string
	//go:embed grep.json
	grepSchema string
)

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Include string `json:"include"`
}

func (e Env) grepTool() tool.Tool {
	return tool.Define(tool.Definition{
		Name: "grep", Text: grepText, Schema: grepSchema,
		Traits: tool.Traits{Parallel: true, ReadOnly: true},
	}, e.grep)
}

func (e Env) grep(ctx context.Context, _ tool.Call, in grepArgs) tool.Result {
	m, at, err := newMatcher(in.Pattern)
	if err != nil {
		return badPattern("pattern", in.Pattern, at, err.Error())
	}
	only, bad := readFilter(in.Include)
	if bad != nil {
		return *bad
	}
	root, err := e.begin(in.Path)
	if err != nil {
		return failed(in.Path, err)
	}
	if !root.isDir {
		return e.grepFile(ctx, m, in.Path, root)
	}
	var all collected
	var unread atomic.Int64
	scratches := make([]scratch, workers())
	folders, err := walk(ctx, root.real, func(en entry) bool {
		if en.isDir {
			return true
		}
		return en.mode&fs.ModeType == 0 && only.takes(en.name, en.rel)
	}, func(worker int, en entry) {
		if ctx.Err() != nil {
			return
		}
		path := join(root.real, en.rel)
		f, err := m.search(ctx, &scratches[worker], path)
		if err != nil && !errors.Is(err, errBinary) && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
			unread.Add(1)
		}
		if f.total == 0 || e.Guard.ForRead(path) != nil {
			return // what no tool may show is as if it did not match
		}
		f.path = e.shown(join(root.named, en.rel))
		all.add(f)
	})
	if err != nil {
		return aborted(ctx)
	}
	lines, total := all.result()
	return answer(lines, total, noLines, folders+int(unread.Load()))
}

const noLines = "No lines match."

// filter is the glob of include: of the name, or of the path below the folder
// searched where it has a slash. "" takes everything.
type filter string

func readFilter(include string) (filter, *tool.Result) {
	if include != "" {
		if at, why := badGlob(include); why != "" {
			r := badPattern("include", include, at, why)
			return "", &r
		}
	}
	return filter(strings.TrimPrefix(include, "./")), nil
}

func (f filter) takes(name, rel string) bool {
	switch {
	case f == "":
		return true
	case strings.Contains(string(f), "/"):
		name = rel
	}
	return doublestar.MatchUnvalidated(string(f), name)
}

// grepFile searches the one file that was named, whatever is ignored.
func (e Env) grepFile(ctx context.Context, m *matcher, named string, root start) tool.Result {
	if err := e.Guard.ForRead(root.real); err != nil {
		return tool.Errorf(tool.CodeDenied, "%v", err)
	}
	f, err := m.search(ctx, &scratch{}, root.real)
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case errors.Is(err, errBinary):
		return tool.Errorf(tool.CodeInvalidArguments, "path %q is a binary file", named)
	case err != nil:
		return failed(named, err)
	}
	f.path = e.shown(root.named)
	return answer(f.rendered(nil), f.total, noLines, 0)
}

func (f found) rendered(to []string) []string {
	for _, l := range f.lines {
		to = append(to, fmt.Sprintf("%s:%d:%s", filepath.ToSlash(f.path), l.number, l.text))
	}
	return to
}

// collected keeps the files that come first, as many as an answer can hold, and
// counts all lines. Safe for concurrent use.
type collected struct {
	mu    sync.Mutex
	files []found
	kept  int // lines in files
	total int
}

func (c *collected) add(f found) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += f.total
	c.kept += len(f.lines)
	c.files = append(c.files, f)
	if c.kept > 20*maxLines {
		c.trim()
	}
}

// trim sorts the files and drops those that no answer reaches.
func (c *collected) trim() {
	slices.SortFunc(c.files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	c.kept = 0
	for i := range c.files {
		if c.kept >= maxLines {
			clear(c.files[i:])
			c.files = c.files[:i]
			return
		}
		c.kept += len(c.files[i].lines)
	}
}

func (c *collected) result() ([]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trim()
	var lines []string
	for _, f := range c.files {
		lines = f.rendered(lines)
	}
	return lines, c.total
}
