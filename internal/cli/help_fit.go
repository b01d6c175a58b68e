package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deepseek/internal/view"
)

// fitHelp makes the help of every command fit the terminal that it is shown on.
// Elsewhere lines are as long as they are.
func fitHelp(a *App, root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if a.OutTerminal() {
			fitCommand(cmd, max(a.outWidth(), 20))
		}
		show(cmd, args)
	})
}

func fitCommand(cmd *cobra.Command, columns int) {
	cmd.Long = view.Wrap(cmd.Long, columns, "")
	for _, sub := range cmd.Commands() {
		indent := strings.Repeat(" ", sub.NamePadding()+3)
		sub.Short = view.Wrap(sub.Short, max(columns-len(indent), 10), indent)
	}
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d", columns)
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", wrapped))
}
