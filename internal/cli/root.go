package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deepseek/internal/config"
	"deepseek/internal/version"
)

// newRoot is the program with the commands that are to be at hand.
func newRoot(a *App, commands []registration) *cobra.Command {
	root := &cobra.Command{
		Use:   "deepseek",
		Short: "A coding agent for the terminal and for CI",
		Long:  "A coding agent for the terminal and for CI.\nIt works on the files of the current directory, keeps every session in a log, and asks you without waiting for ever.",
		Example: `  deepseek run "explain what this directory holds"
  deepseek run --model demo "what is here?"`,
		Args:              func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Version:           version.Current().String(),
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.Flags().Bool("version", false, "print the version") // else cobra gives it -v, which means verbose
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&a.global.home, "home", "", "`directory` of sessions and configuration (default $DEEPSEEK_HOME, else ~/.deepseek)")
	f.StringVar(&a.global.cwd, "cwd", "", "`directory` to work in")
	f.StringVar(&a.global.config, "config", "", "configuration `file` (default config.yaml in the home)")
	for _, c := range commands {
		root.AddCommand(c.build(a))
	}
	root.SetHelpCommand(newHelp(root))
	fitHelp(a, root)
	watchStart(a, root)
	return root
}

// watchStart notes when a command's own function is reached: what fails earlier
// is the parser's, and a usage error.
func watchStart(a *App, cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.running = true
			if err := emptyPath(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		watchStart(a, sub)
	}
}

// emptyPath refuses a path that came out empty, as of a variable that is not set:
// taken for a flag that was not given, it would be something else without a word.
func emptyPath(given *pflag.FlagSet) error {
	for _, name := range []string{"home", "cwd", "config", "script", "answers", "json", "dir", "man"} {
		if f := given.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usagef("--%s is empty\ngive a path, or leave it out", name)
		}
	}
	return nil
}

func newHelp(root *cobra.Command) *cobra.Command {
	var man string
	help := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command, or manual pages",
		Example: `  deepseek help run
  deepseek help --man ~/.local/share/man`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(root), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return unknownCommand(root, args)
			}
			if len(rest) > 0 {
				return unknownCommand(cmd, rest)
			}
			if man != "" {
				return writeManPages(man, cmd)
			}
			return cmd.Help()
		},
	}
	help.Flags().StringVar(&man, "man", "", "write manual pages of the command, and those below it, into man1 of a `folder`")
	return help
}

// unknownCommand is the Args of a command that has sub-commands and takes no
// arguments of its own.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() && strings.ContainsAny(args[0], " \n") {
		return usagef("unknown command %q\nto give it as a task: deepseek run TASK", cut(args[0]))
	}
	hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
	if near := config.Nearest(args[0], names(cmd)); near != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near)
	}
	return usagef("unknown command %q\n%s", cut(args[0]), hint)
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			out = append(out, sub.Name())
		}
	}
	return out
}

// flagError turns the parser's error into ours and names the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
	var unknown *pflag.NotExistError
	var value *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		given := "--" + unknown.GetSpecifiedName()
		word := unknown.GetSpecifiedName()
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			given, word = "-"+group, group
		}
		var known []string
		add := func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		}
		cmd.Flags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
		if near := config.Nearest(word, known); near != "" && len(word) > 1 {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
		return usagef("unknown flag %s\n%s", cut(given), hint)
	case errors.As(err, &value):
		return usagef("--%s needs a value\n%s", value.GetFlag().Name, hint)
	case errors.Is(err, pflag.ErrHelp):
		return err
	}
	return usagef("%s\n%s", err, hint)
}

// cut shortens what the person typed where it is repeated in an error.
func cut(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
