package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	ended, by := make(chan struct{}), make(chan pagerEnd, 1)
	go func() { by <- guardPager(cmd.Process, got, ended) }()
	err = errors.Join(write(in), in.Close())
	waited := cmd.Wait()
	close(ended)
	end := <-by
	if end.signal != nil {
		return end.signal
	}
	if waited != nil && !end.interrupted {
		return pagerFailed(pager, waited)
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

// pagerEnd is what ended a pager from here.
type pagerEnd struct {
	signal      error // nil if none
	interrupted bool  // the keyboard's signal came while it ran
}

// guardPager ends the pager on a signal other than the keyboard's. It returns
// when the pager has ended.
func guardPager(p *os.Process, got <-chan os.Signal, ended <-chan struct{}) (end pagerEnd) {
	for {
		var sig os.Signal
		select {
		case <-ended:
			return end
		case sig = <-got:
		}
		if sig == syscall.SIGINT {
			end.interrupted = true
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
		end.signal = Signal{sig.(syscall.Signal)}
		return end
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
