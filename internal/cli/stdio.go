package cli

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/remote"
)

// serverSettings are the settings of commands that serve sessions to a client.
var serverSettings = []string{
	"model", "base_url", "effort", "max_tokens", "temperature", "mode", "timeout", "max_timeout", "answerer",
	"permission", "approve", "max_steps", "max_duration", "max_goal_rounds", "on_question",
}

// serverOptions are those of a command that serves sessions.
type serverOptions struct{ settings map[string]string }

// newServer completes a command that serves sessions and has its words.
func newServer(a *App, cmd *cobra.Command, run func(context.Context, *App, serverOptions) error) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return run(cmd.Context(), a, serverOptions{settings: given(cmd.Flags())})
	}
	addSettings(cmd, serverSettings...)
	return cmd
}

// serveStdio is what the protocol servers have in common: what is wrong here and
// now is told before the client says anything, signals end the server with their
// status, and a client that leaves is no failure.
func serveStdio(ctx context.Context, a *App, name string, flags map[string]string, serve func(ctx context.Context, in, out *os.File) error) error {
	if err := a.NotFromTool(name); err != nil {
		return err
	}
	where, err := a.options(flags)
	if err != nil {
		return err
	}
	cfg, err := config.Load(where)
	if err != nil {
		return err
	}
	a.hide(cfg.Known())
	if cfg.Answerer == answererTTY {
		return usagef("%s has no terminal to ask in: its client is asked\nuse --answerer auto, remote or none", name)
	}
	in, ok1 := a.streams.In.(*os.File)
	out, ok2 := a.streams.Out.(*os.File)
	if !ok1 || !ok2 {
		return usagef("%s needs files as standard input and output\nconnect both to the client", name)
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	err = serve(ctx, in, out)
	var refused *remote.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, syscall.EPIPE):
		return nil // the client has left: that is its way to end
	case errors.As(err, &refused):
		return &Coded{Exit: ExitFailed, Code: refused.Code, Message: refused.Message}
	}
	return err
}
