package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

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

// paged writes to stdout, on a terminal through the pager. It returns when the
// pager has ended; a pager that is left early ends the writing, quietly.
//
// The pager shares this program's group and terminal, so Ctrl+C reaches both.
// What it means is the pager's to say: it may end a search there. Other signals
// end both.
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
	shown, err := a.startForeground(cmd)
	if err != nil {
		return a.printWhole(ctx, write)
	}
	signals.Stop()
	err = errors.Join(write(in), in.Close())
	end := shown.wait()
	if end.signal != nil {
		return end.signal
	}
	if end.err != nil && !end.interrupted {
		return pagerFailed(pager, end.err)
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// pagerFailed is the error of a pager that did not end well, so that it is not
// known what of the text was seen. Ending it by Ctrl+C is a way to leave one.
func pagerFailed(pager string, err error) error {
	c := &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Hint: "set PAGER to one that can be run, or to cat"}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 127:
		c.Message = fmt.Sprintf("the pager %q cannot be run", cut(pager))
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT:
		return nil
	default:
		c.Message = fmt.Sprintf("the pager %q failed: %v", cut(pager), err)
	}
	return c
}

// pagerEnv makes less end at once where everything fits, and show colours.
func (a *App) pagerEnv() []string {
	env := a.Env
	if a.Getenv("LESS") == "" {
		env = append(env[:len(env):len(env)], "LESS=FRX")
	}
	return env
}
