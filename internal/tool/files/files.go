// Package files holds the tools that read and change files: read, write and
// edit. A change goes through a folder handle that the guard hands out, needs
// that the model has seen the version it replaces, and leaves either the old or
// the new content behind, whenever the machine stops.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"deepseek/internal/permission"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// Guard decides on access. Its refusals are *permission.Denied.
type Guard interface {
	// ForWrite decides on a change of path, which is absolute and clean, and
	// may ask a person. The caller closes the Root of the answer.
	ForWrite(ctx context.Context, path string, ask permission.AskWrite) (permission.Access, error)
	// ForRead refuses the files that no tool may show.
	ForRead(path string) error
}

// Env is what the tools work with.
type Env struct {
	Cwd      string // absolute
	Guard    Guard
	Observed *Observed
}

// Codes of failures beside those that every tool may use.
const (
	CodeNotFound    = "FS_NOT_FOUND"
	CodeNotAFile    = "FS_NOT_A_FILE"
	CodeNotText     = "FS_NOT_TEXT"
	CodeTooLarge    = "FS_TOO_LARGE"
	CodeNotObserved = "FS_NOT_OBSERVED"
	CodeStale       = "FS_STALE_VERSION"
	CodeNoMatch     = "FS_NO_MATCH"
	CodeAmbiguous   = "FS_AMBIGUOUS_EDIT"
	CodeReadOnly    = "FS_READ_ONLY"
	CodeIO          = "FS_IO"
)

// maxWhole bounds the files that are held in memory and whose versions are kept.
const maxWhole = 64 << 20

// New makes the tools read, write and edit, in this order.
func New(env Env) []tool.Tool {
	return []tool.Tool{env.readTool(), env.writeTool(), env.editTool()}
}

// place is where a call points at.
type place struct {
	abs   string // as asked for, absolute and clean
	real  string // links resolved; "" where nothing is there
	shown string // as the model reads it: relative inside cwd, else absolute
}

// resolve finds the place that a file_path names. What is not there yet is no error.
func (e Env) resolve(name string) (place, error) {
	if name == "" {
		return place{}, coded{tool.CodeInvalidArguments, "file_path is empty"}
	}
	if strings.IndexByte(name, 0) >= 0 {
		return place{}, coded{tool.CodeInvalidArguments, "file_path holds a NUL byte"}
	}
	if strings.HasPrefix(name, "~") && !e.exists(name) {
		return place{}, coded{tool.CodeInvalidArguments, fmt.Sprintf("file_path %q: %s", tool.Brief(name), tool.Tilde(name))}
	}
	p := place{abs: filepath.Clean(name)}
	if !filepath.IsAbs(name) {
		p.abs = filepath.Join(e.Cwd, name)
	}
	if len(p.abs) >= unix.PathMax {
		// It could be made, step by step, and then not be named again.
		return p, coded{tool.CodeInvalidArguments, fmt.Sprintf("file_path has %d bytes as a whole path, the limit is %d", len(p.abs), unix.PathMax-1)}
	}
	p.shown = p.abs
	if rel, err := filepath.Rel(e.Cwd, p.abs); err == nil && filepath.IsLocal(rel) {
		p.shown = rel
	}
	real, err := filepath.EvalSymlinks(p.abs)
	if err == nil {
		p.real = real
		return p, nil
	}
	if _, serr := os.Stat(p.abs); errors.Is(serr, syscall.ELOOP) {
		return p, p.failed(serr) // in the system's words, not those of a library
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return p, p.failed(err)
	}
	if fi, lerr := os.Lstat(p.abs); lerr == nil && fi.Mode()&fs.ModeSymlink != 0 {
		target, rerr := os.Readlink(p.abs)
		if rerr != nil {
			return p, p.failed(rerr)
		}
		return p, coded{CodeNotFound, p.shown + " is a symbolic link to " + target + ", where nothing is; name the target itself"}
	}
	return p, nil
}

// exists tells whether the first part of a relative path is there.
func (e Env) exists(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	_, err := os.Lstat(filepath.Join(e.Cwd, first))
	return err == nil
}

// coded is an error with the code that the model is told.
type coded struct {
	code, text string
}

func (c coded) Error() string { return c.text }

// failed words an error of the system.
func (p place) failed(err error) error {
	var c coded
	var denied *permission.Denied
	switch {
	case errors.As(err, &c), errors.As(err, &denied), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errEndless):
		return coded{CodeNotAFile, p.shown + " is no ordinary file: " + errEndless.Error()}
	case errors.Is(err, syscall.ENOTDIR):
		return coded{CodeNotAFile, p.shown + ": a part of the path is a file, not a folder"}
	case errors.Is(err, fs.ErrPermission):
		return coded{CodeIO, p.shown + ": permission denied by the system"}
	}
	cause := err
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	if errors.As(err, &pathErr) {
		cause = pathErr.Err
	} else if errors.As(err, &linkErr) {
		cause = linkErr.Err
	}
	return coded{CodeIO, p.shown + ": " + cause.Error()}
}

// result turns an error into what the model reads.
func result(err error) tool.Result {
	var c coded
	var denied *permission.Denied
	switch {
	case errors.As(err, &denied):
		r := tool.Errorf(tool.CodeDenied, "%s", denied.Message)
		if denied.Asked {
			r.Meta = &session.ToolMeta{Denied: true}
		}
		return r
	case errors.As(err, &c):
		return tool.Errorf(c.code, "%s", c.text)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return tool.Errorf(tool.CodeAborted, "cancelled before anything was changed")
	default:
		return tool.Errorf(CodeIO, "%v", err)
	}
}
