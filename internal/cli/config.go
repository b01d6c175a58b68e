package cli

import (
	"context"
	"regexp"
	"sync"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

type configOptions struct {
	json     bool
	key      string // of get, set and unset
	value    string // of set
	settings map[string]string
}

// newConfig is a group; its sub-commands are built one by one so that each can
// be tested alone.
func newConfig(a *App) *cobra.Command {
	cmd := newConfigList(a, runConfigList)
	cmd.AddCommand(newConfigGet(a, runConfigGet), newConfigSet(a, runConfigSet), newConfigUnset(a, runConfigUnset), newConfigEdit(a, runConfigEdit), newConfigPath(a, runConfigPath))
	return cmd
}

type configRun = func(context.Context, *App, configOptions) error

func newConfigList(a *App, run configRun) *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and where each comes from",
		Long: `Show the settings and where each comes from, or change the configuration file.

A flag stands against a variable (DEEPSEEK_MODE, …), that against the project's
.deepseek/config.yaml, that against your own file, that against the default.`,
		Example: `  deepseek config
  deepseek config --json`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settings = given(cmd.Flags())
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an object of {value, source} by key")
	addSettings(cmd)
	return cmd
}

func runConfigList(_ context.Context, a *App, o configOptions) error {
	c, err := a.Load(o.settings, false)
	if err != nil {
		return err
	}
	if _, err := c.Waits(nil); err != nil {
		return err
	}
	if o.json {
		return a.printSettings(c.Values())
	}
	for _, v := range c.Values() {
		a.Printf("%s = %s  (%s)\n", v.Key, a.visible(v.Text()), v.Source)
	}
	return nil
}

// printSettings writes one object with the keys in the list's order.
func (a *App) printSettings(values []config.Value) error {
	type entry struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	a.Printf("{")
	for i, v := range values {
		raw, err := session.Marshal(entry{v.Data, v.Source.String()})
		if err != nil {
			return err
		}
		comma := ","
		if i == len(values)-1 {
			comma = ""
		}
		a.Printf("\n  %q: %s%s", v.Key, raw, comma)
	}
	a.Printf("\n}\n")
	return nil
}

func newConfigGet(a *App, run configRun) *cobra.Command {
	return &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of one setting",
		Example: `  deepseek config get model
  deepseek config get max_steps`,
		Args:              arguments("KEY"),
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, configOptions{key: args[0]})
		},
	}
}

func runConfigGet(_ context.Context, a *App, o configOptions) error {
	if _, ok := config.Lookup(o.key); !ok {
		return config.UnknownKey(o.key)
	}
	c, err := a.Load(nil, false)
	if err != nil {
		return err
	}
	v, _ := c.Value(o.key)
	a.Printf("%s\n", a.visible(v.Text()))
	return nil
}

func newConfigSet(a *App, run configRun) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Write a setting into your configuration file",
		Long:  "Write a setting into your configuration file. Comments stay. Lists and maps are given as YAML.",
		Example: `  deepseek config set mode timed
  deepseek config set sandbox_writable '[~/.cache, /var/tmp]'`,
		Args:              func(*cobra.Command, []string) error { return nil }, // flags may be among them
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			words, err := amongFlags(cmd, args)
			if err != nil {
				return err
			}
			if help, _ := cmd.Flags().GetBool("help"); help {
				return cmd.Help()
			}
			if err := arguments("KEY", "VALUE")(cmd, words); err != nil {
				return err
			}
			return run(cmd.Context(), a, configOptions{key: words[0], value: words[1]})
		},
	}
	cmd.Flags().SetInterspersed(false) // see amongFlags
	return cmd
}

// amongFlags reads the flags among the arguments of a command whose own parsing
// ends at the first argument, and returns the others. A number below zero is no
// flag, and behind -- nothing is.
func amongFlags(cmd *cobra.Command, args []string) (words []string, err error) {
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "--":
			return append(words, args[1:]...), nil
		case len(arg) > 1 && arg[0] == '-' && !negative().MatchString(arg):
			if err := cmd.ParseFlags(args); err != nil {
				return nil, flagError(cmd, err)
			}
			args = cmd.Flags().Args()
		default:
			words, args = append(words, arg), args[1:]
		}
	}
	return words, nil
}

var negative = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-[0-9.]`) })

func runConfigSet(_ context.Context, a *App, o configOptions) error {
	return a.editConfig(func(path string) error { return config.Set(path, o.key, o.value) })
}

func newConfigUnset(a *App, run configRun) *cobra.Command {
	return &cobra.Command{
		Use:   "unset KEY",
		Short: "Take a setting out of your configuration file",
		Long: "Take a setting out of your configuration file, so that the default or the project's value counts again.\n" +
			"One that is not there is no error. Comments and the other settings stay.",
		Example: `  deepseek config unset mode
  deepseek config unset max_duration`,
		Args:              arguments("KEY"),
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, configOptions{key: args[0]})
		},
	}
}

func runConfigUnset(_ context.Context, a *App, o configOptions) error {
	return a.editConfig(func(path string) error { return config.Unset(path, o.key) })
}

func (a *App) editConfig(edit func(path string) error) error {
	if err := a.NotFromTool("changing the configuration"); err != nil {
		return err
	}
	o, err := a.options(nil)
	if err != nil {
		return err
	}
	return edit(o.UserFile())
}

func newConfigPath(a *App, run configRun) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print where your configuration file is",
		Example: `  deepseek config path
  ls -l "$(dirname "$(deepseek config path)")"`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, configOptions{}) },
	}
}

func runConfigPath(_ context.Context, a *App, _ configOptions) error {
	o, err := a.options(nil)
	if err != nil {
		return err
	}
	a.Printf("%s\n", o.UserFile())
	return nil
}

func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		if s, ok := config.Lookup(args[0]); ok {
			return s.Choices, cobra.ShellCompDirectiveNoFileComp
		}
	}
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, s := range config.Settings() {
		out = append(out, s.Key)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// visible is for untrusted text on stdout: exact in a pipe, harmless on a terminal.
func (a *App) visible(s string) string {
	if a.OutTerminal() {
		return view.Visible(s)
	}
	return s
}
