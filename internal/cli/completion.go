package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type completionOptions struct {
	shell string
	root  *cobra.Command
}

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletion(a *App, run func(context.Context, *App, completionOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. It completes commands, flags, session ids and call ids.

  bash:       deepseek completion bash > ~/.local/share/bash-completion/completions/deepseek
              (needs the package bash-completion, version 2 or later)
  zsh:        deepseek completion zsh > "${fpath[1]}/_deepseek"
  fish:       deepseek completion fish > ~/.config/fish/completions/deepseek.fish
  powershell: deepseek completion powershell >> $PROFILE`,
		Example: `  deepseek completion bash
  deepseek completion zsh`,
		ValidArgs: shells(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("completion takes one of %s\nsee deepseek completion --help", list(shells()))
			}
			return oneOf("shell", args[0], shells())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, completionOptions{shell: args[0], root: cmd.Root()})
		},
	}
}

func runCompletion(_ context.Context, a *App, o completionOptions) error {
	switch o.shell {
	case "bash":
		return o.root.GenBashCompletionV2(a.Out, true)
	case "zsh":
		return o.root.GenZshCompletion(a.Out)
	case "fish":
		return o.root.GenFishCompletion(a.Out, true)
	}
	return o.root.GenPowerShellCompletionWithDesc(a.Out)
}
