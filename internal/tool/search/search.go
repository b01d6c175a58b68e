// Package search holds the tools that find files by name (glob) and by content
// (grep). Both walk folders in parallel, leave out what .gitignore leaves out,
// never follow links to folders, and answer in one fixed order.
package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"deepseek/internal/tool"
)

// Guard refuses the files that no tool may show.
type Guard interface {
	ForRead(path string) error
}

// Env is what the tools work with.
type Env struct {
	Cwd   string // absolute
	Guard Guard
}

// CodeNotFound is the code for a path at which nothing is.
const CodeNotFound = "FS_NOT_FOUND"

// Limits of one answer.
const (
	maxLines = 200
	maxBytes = 48_000
)

// New makes the tools glob and grep, in this order.
func New(env Env) []tool.Tool {
	return []tool.Tool{env.globTool(), env.grepTool()}
}

func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// start is where a search begins.
type start struct {
	named string // as asked for, absolute and clean: answers are named after it
	real  string // links resolved: what is opened
	isDir bool
}

// begin finds the start of a search. Nothing there is an fs.ErrNotExist.
func (e Env) begin(path string) (start, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return start{}, errors.New("path holds a NUL byte")
	}
	s := start{named: filepath.Clean(path)}
	if !filepath.IsAbs(path) {
		s.named = filepath.Join(e.Cwd, path)
	}
	if _, err := os.Stat(s.named); err != nil {
		if strings.HasPrefix(path, "~") {
			return s, errors.New(tool.Tilde(path))
		}
		return s, err // in the system's words, not those of a library
	}
	var err error
	if s.real, err = filepath.EvalSymlinks(s.named); err != nil {
		return s, err
	}
	fi, err := os.Stat(s.real)
	if err != nil {
		return s, err
	}
	if !fi.IsDir() && !fi.Mode().IsRegular() {
		return s, errors.New("is neither a folder nor a file")
	}
	s.isDir = fi.IsDir()
	return s, nil
}

// failed words an error about the path of a call.
func failed(path string, err error) tool.Result {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Errorf(CodeNotFound, "path %q does not exist", path)
	}
	return tool.Errorf(tool.CodeInvalidArguments, "path %q: %v", path, err)
}

func aborted(ctx context.Context) tool.Result {
	return tool.Errorf(tool.CodeAborted, "the search was cut off: %v", context.Cause(ctx))
}

// shown is a path as answers have it: relative inside cwd, else absolute, and on
// one line whatever the names are.
func (e Env) shown(abs string) string { return tool.Name(e.relative(abs)) }

func (e Env) relative(abs string) string {
	if e.Cwd == "/" {
		return strings.TrimPrefix(abs, "/")
	}
	if abs == e.Cwd {
		return "."
	}
	if rest, ok := strings.CutPrefix(abs, e.Cwd+"/"); ok {
		return rest
	}
	return abs
}

// answer lays out lines within the limits. total counts those that were found.
func answer(lines []string, total int, none string, unread int) tool.Result {
	var b strings.Builder
	n := 0
	for _, line := range lines {
		line = tool.Printable(line)
		if n == maxLines || b.Len()+len(line) > maxBytes {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
		n++
	}
	switch {
	case total == 0:
		b.WriteString(none + "\n")
	case total > n:
		fmt.Fprintf(&b, "… %d more\n", total-n)
	}
	if unread > 0 {
		fmt.Fprintf(&b, "(%d folders or files could not be read)\n", unread)
	}
	return tool.Result{Content: strings.TrimSuffix(b.String(), "\n")}
}
