package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"deepseek/internal/remote"
	"deepseek/internal/version"
)

func newRPC(a *App, run func(context.Context, *App, serverOptions) error) *cobra.Command {
	return newServer(a, &cobra.Command{
		Use:   "rpc",
		Short: "Serve sessions to a program, as JSON-RPC on standard input and output",
		Long: "Serve sessions to a program: JSON-RPC 2.0, one object a line, on standard input and output.\n" +
			"The client says in initialize where it works and with which settings; flags are for what it leaves out. docs/protocol.md has the messages.",
		Example: `  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"cwd":"."}}' | deepseek rpc
  deepseek rpc --model demo`,
	}, run)
}

func runRPC(ctx context.Context, a *App, o serverOptions) error {
	return serveStdio(ctx, a, "rpc", o.settings, func(ctx context.Context, in, out *os.File) error {
		return remote.ServeStdio(ctx, in, out, &rpcServer{app: a, flags: o.settings}, remote.Options{Version: version.Current().Version})
	})
}
