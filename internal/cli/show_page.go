package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/term"

	"deepseek/internal/config"
)

// outColour is Colour for stdout.
func (a *App) outColour(c *config.Config) bool {
	return colour(c.Color, c.Source("color").Origin == config.FromProject, a.OutTerminal(), a.Getenv)
}

// outWidth is Width for stdout.
func (a *App) outWidth() int {
	if f, ok := a.streams.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(a.Getenv("COLUMNS")); err == nil && w > 0 && w < 1<<14 {
		return w
	}
	return 80
}

// pager is the command that shows long text on a terminal, "" for none.
func (a *App) pager() string {
	if !a.OutTerminal() || a.Getenv("TERM") == "dumb" || a.Getenv("TERM") == "" {
		return ""
	}
	for _, kv := range a.Env {
		if p, ok := strings.CutPrefix(kv, "PAGER="); ok {
			if p = strings.TrimSpace(p); p == "cat" {
				return ""
			}
			return p
		}
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// pagerGrace is how long a pager may take to give the terminal back.
const pagerGrace = 2 * time.Second

// paged writes to stdout, on a terminal through the pager. It returns when the
// pager has ended; a pager that is left early ends the writing, quietly.
//
// The pager shares this program's group and terminal, so Ctrl+C reaches both.
// What it means is the pager's to say: it may end a search there. SIGTERM and
// SIGHUP end both.
func (a *App) paged(ctx context.Context, signals *Signals, write func(io.Writer) error) (err error) {
	pager := a.pager()
	if pager == "" {
		return a.printWhole(ctx, write)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", pager)
	cmd.Env, cmd.Stdout, cmd.Stderr = a.pagerEnv(), a.streams.Out, a.streams.Err
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(got)
	if err := cmd.Start(); err != nil {
		return a.printWhole(ctx, write)
	}
	signals.Stop()
	ended, by := make(chan struct{}), make(chan error, 1)
	go func() { by <- guardPager(cmd.Process, got, ended) }()
	err = errors.Join(write(in), in.Close())
	waited := cmd.Wait()
	close(ended)
	if sig := <-by; sig != nil {
		return sig
	}
	var exit *exec.ExitError
	if errors.As(waited, &exit) && exit.ExitCode() == 127 {
		return &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("the pager %q cannot be run", pager), Hint: "set PAGER to one that can, or to cat"}
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// guardPager ends the pager on a signal other than the keyboard's, and returns
// that signal. It ends when the pager has ended.
func guardPager(p *os.Process, got <-chan os.Signal, ended <-chan struct{}) error {
	for {
		var sig os.Signal
		select {
		case <-ended:
			return nil
		case sig = <-got:
		}
		if sig == syscall.SIGINT {
			continue
		}
		_ = p.Signal(syscall.SIGTERM) // it may have ended
		t := time.NewTimer(pagerGrace)
		defer t.Stop()
		select {
		case <-ended:
		case <-t.C:
			_ = p.Kill()
			<-ended
		}
		return Signal{sig.(syscall.Signal)}
	}
}

// pagerEnv makes less end at once where everything fits, and show colours.
func (a *App) pagerEnv() []string {
	env := a.Env
	if a.Getenv("LESS") == "" {
		env = append(env[:len(env):len(env)], "LESS=FRX")
	}
	return env
}

// writePage writes a file, named relative to the working directory, whole or
// not at all, and replaces an old one. What is no regular file, such as a pipe,
// is written to.
func (a *App) writePage(path string, write func(io.Writer) error) error {
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
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the file is replaced, not the link
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
