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

type rpcOptions struct{ settings map[string]string }

func newRPC(a *App, run func(context.Context, *App, rpcOptions) error) *cobra.Command {
	var o rpcOptions
	cmd := &cobra.Command{
		Use:   "rpc",
		Short: "Serve sessions to a program, as JSON-RPC on standard input and output",
		Long: "Serve sessions to a program: JSON-RPC 2.0, one object a line, on standard input and output.\n" +
			"The client says in initialize where it works and with which settings; flags are for what it leaves out. docs/protocol.md has the messages.",
		Example: `  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"cwd":"."}}' | deepseek rpc
  deepseek rpc --model demo`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.settings = given(cmd.Flags())
			return run(cmd.Context(), a, o)
		},
		Args: cobra.NoArgs,
	}
	addSettings(cmd, serverSettings...)
	return cmd
}

// serverSettings are the settings of commands that serve sessions to a client.
var serverSettings = []string{
	"model", "base_url", "effort", "max_tokens", "temperature", "mode", "timeout", "max_timeout", "answerer",
	"permission", "approve", "max_steps", "max_duration", "max_goal_rounds", "on_question",
}

func runRPC(ctx context.Context, a *App, o rpcOptions) error {
	if err := a.NotFromTool("rpc"); err != nil {
		return err
	}
	// What is wrong here and now is told before the client says anything.
	where, err := a.options(o.settings)
	if err != nil {
		return err
	}
	cfg, err := config.Load(where)
	if err != nil {
		return err
	}
	if cfg.Answerer == answererTTY {
		return usagef("rpc has no terminal to ask in: its client is asked\nuse --answerer auto, remote or none")
	}
	in, ok1 := a.streams.In.(*os.File)
	out, ok2 := a.streams.Out.(*os.File)
	if !ok1 || !ok2 {
		return usagef("rpc needs files as standard input and output")
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	err = remote.ServeStdio(ctx, in, out, &rpcServer{app: a, flags: o.settings}, remote.Options{Version: buildVersion().Version})
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
