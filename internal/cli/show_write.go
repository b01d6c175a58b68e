package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

// writePage writes a file, named relative to the working directory, whole or
// not at all, and replaces an old one. What is no regular file, such as a pipe,
// is written to. Of a link its target is written, be it there or not.
func (a *App) writePage(home, path string, write func(io.Writer) error) error {
	failed := func(err error) error {
		if err == nil {
			return nil
		}
		return &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("cannot write %s: %v", path, reason(err))}
	}
	if !filepath.IsAbs(path) {
		cwd, err := a.Cwd()
		if err != nil {
			return err
		}
		path = filepath.Join(cwd, path)
	}
	path = linkTarget(path)
	if what := a.precious(home, path); what != "" {
		return usagef("%s is %s and would be lost\nname another file, or - for stdout", path, what)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return usagef("cannot write the page to %s: it is a directory\nname a file, or - for stdout", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return failed(err)
		}
		return failed(errors.Join(write(f), f.Close()))
	}
	// A transcript is as private as its session; an old file keeps its mode.
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600), renameio.WithExistingPermissions())
	if err != nil {
		return failed(err)
	}
	if err = write(f); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	return failed(errors.Join(err, f.Cleanup()))
}

// linkTarget is what a path leads to through links, the last of which may lead
// to what is not there. A path that cannot be followed is itself.
func linkTarget(path string) string {
	end := path
	for range 40 { // as many as the system follows
		if real, err := filepath.EvalSymlinks(end); err == nil {
			return real
		}
		to, err := os.Readlink(end)
		if err != nil {
			// Not a link: it is to be made, in a folder that may be one.
			if dir, err := filepath.EvalSymlinks(filepath.Dir(end)); err == nil {
				return filepath.Join(dir, filepath.Base(end))
			}
			return end
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(end), to)
		}
		end = to
	}
	return path
}

// precious says what a path is that output is not to be written over, "" for any
// other: a session's file, wherever it lies and whatever it is called, whatever
// else the store keeps, and the configuration.
func (a *App) precious(home, path string) string {
	if o, err := a.options(nil); err == nil && config.SameFile(path, o.UserFile()) {
		return "your configuration"
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		_, err = logstore.ReadHeader(path)
		if err == nil || errors.Is(err, session.ErrTooNew) || strings.HasSuffix(path, logExtension) && info.Size() > 0 {
			return "a session's file"
		}
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(home, "sessions")); err == nil {
		if rel, err := filepath.Rel(real, path); err == nil && filepath.IsLocal(rel) {
			return "in the folder of the sessions"
		}
	}
	return ""
}
