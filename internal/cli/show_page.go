package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
func (a *App) paged(ctx context.Context, write func(io.Writer) error) error {
	pager := a.pager()
	if pager == "" {
		return a.printWhole(write)
	}
	// The keyboard's signals are the pager's; it and this program share a group
	// and a terminal. Only one that is sent to this program ends both.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", pager)
	stop := context.AfterFunc(ctx, func() {})
	defer stop()
	cmd.Env = a.pagerEnv()
	cmd.Stdout, cmd.Stderr = a.streams.Out, a.streams.Err
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return a.printWhole(write)
	}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.endPager(ctx, cmd.Process, ended)
	}()
	err = errors.Join(write(in), in.Close())
	waited := cmd.Wait()
	close(ended)
	<-watched
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		err = nil
	}
	var exit *exec.ExitError
	if errors.As(waited, &exit) && exit.ExitCode() == 127 {
		return &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("the pager %q cannot be run", pager), Hint: "set PAGER to one that can, or to cat"}
	}
	return err
}

// pagerEnv makes less end at once where everything fits, and show colours.
func (a *App) pagerEnv() []string {
	env := a.Env
	if a.Getenv("LESS") == "" {
		env = append(env[:len(env):len(env)], "LESS=FRX")
	}
	return env
}

// endPager ends the pager when the program is to end by another signal than
// the keyboard's, which the pager has had as well and may live on after.
func (a *App) endPager(ctx context.Context, p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	var sig Signal
	if errors.As(context.Cause(ctx), &sig) && sig.Signal == syscall.SIGINT {
		<-ended
		return
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
}

// writeFile writes a file whole or not at all, and replaces an old one. What is
// no regular file, such as a pipe, is written to.
func writeFile(path string, write func(io.Writer) error) error {
	failed := func(err error) error {
		if err == nil {
			return nil
		}
		return &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("cannot write %s: %v", path, reason(err))}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return usagef("cannot write the page to %s: it is a directory", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return failed(err)
		}
		return failed(errors.Join(write(f), f.Close()))
	}
	// A transcript is private as its session is; an old file keeps its mode.
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o600), renameio.WithExistingPermissions())
	if err != nil {
		return failed(err)
	}
	err = write(f)
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	return failed(errors.Join(err, f.Cleanup()))
}
