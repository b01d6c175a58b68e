package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

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

func runRPC(ctx context.Context, a *App, o rpcOptions) error {
	return serveStdio(ctx, a, "rpc", o.settings, func(ctx context.Context, in, out *os.File) error {
		return remote.ServeStdio(ctx, in, out, &rpcServer{app: a, flags: o.settings}, remote.Options{Version: buildVersion().Version})
	})
}
