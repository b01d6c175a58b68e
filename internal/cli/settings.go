package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deepseek/internal/config"
	"deepseek/internal/view"
)

// settingFlag is the flag of a setting. It keeps the text; config reads and
// checks it, so that a flag, a variable and a line of the file meet one rule.
type settingFlag struct {
	setting config.Setting
	text    string
}

func (f *settingFlag) Set(text string) error {
	f.text = text
	return nil
}

func (f *settingFlag) String() string {
	if f.setting.Default == nil {
		return f.text
	}
	if f.text == "" {
		return fmt.Sprint(f.setting.Default)
	}
	return f.text
}

// Type is the placeholder in help.
func (f *settingFlag) Type() string {
	switch f.setting.Kind {
	case config.Choice:
		return strings.Join(f.setting.Choices, "|")
	case config.Whole:
		return "N"
	case config.Switch:
		return "bool"
	}
	return "value"
}

// addSettings gives a command the flags of the named settings, of all that have
// one where none is named.
func addSettings(cmd *cobra.Command, keys ...string) {
	flags := cmd.Flags()
	for _, s := range config.Settings() {
		if !s.Flag || len(keys) > 0 && !slices.Contains(keys, s.Key) {
			continue
		}
		f := flags.VarPF(&settingFlag{setting: s}, s.FlagName(), s.Short, s.Usage)
		if s.Kind == config.Switch {
			f.NoOptDefVal = "true"
		}
		if s.Kind == config.Choice {
			// The error is for a flag that is not there.
			_ = cmd.RegisterFlagCompletionFunc(s.FlagName(), cobra.FixedCompletions(s.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// given collects the settings whose flags were given.
func given(flags *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	flags.Visit(func(f *pflag.Flag) {
		if s, ok := f.Value.(*settingFlag); ok {
			out[s.setting.Key] = s.text
		}
	})
	return out
}

// Load reads the settings for a command whose flags were given as by given. It
// tells warnings, and notes whether failures are to be told as JSON as well,
// which is so for commands that have --output.
func (a *App) Load(flags map[string]string, hasOutput bool) (*config.Config, error) {
	o, err := a.options(flags)
	if err != nil {
		return nil, err
	}
	c, err := config.Load(o)
	if err != nil {
		return nil, err
	}
	a.hide(c.Known())
	a.json = hasOutput && c.Output != "text"
	if !c.Quiet {
		for _, w := range c.Warnings {
			a.Warnf("deepseek: warning: %s\n", view.OneLine(w)) // it quotes keys that a stranger may have written
		}
	}
	return c, nil
}
