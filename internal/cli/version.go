package cli

import (
	"context"

	"github.com/spf13/cobra"

	"deepseek/internal/version"
)

type versionOptions struct{}

func newVersion(a *App, run func(context.Context, *App, versionOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  deepseek version
  deepseek version | cut -d' ' -f2`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, versionOptions{}) },
	}
}

// The bare `deepseek version` is answered before Main: see package version.
func runVersion(_ context.Context, a *App, _ versionOptions) error {
	a.Printf("%s\n", version.Current())
	return nil
}
