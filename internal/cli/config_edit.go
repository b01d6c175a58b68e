package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
)

func newConfigEdit(a *App, run configRun) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Open your configuration file in an editor",
		Long: "Open your configuration file in $VISUAL, else $EDITOR, else vi, and check it afterwards.\n" +
			"A file that is not there is begun.",
		Example: `  deepseek config edit
  EDITOR=nano deepseek config edit`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, configOptions{}) },
	}
}

func runConfigEdit(_ context.Context, a *App, _ configOptions) error {
	return a.editConfig(func(path string) error {
		if err := config.Begin(path); err != nil {
			return usagef("cannot begin %s: %v\nsay where the settings are with --home or --config", path, reason(err))
		}
		if err := a.edit(path); err != nil {
			return err
		}
		if err := config.Check(path); err != nil {
			return usagef("%v\nmend it with: deepseek config edit", err)
		}
		return nil
	})
}

// edit runs the person's editor on a file, on this program's own streams. The
// editor shares the terminal, and what Ctrl+C and Ctrl+\ mean there is the
// editor's to say. Other signals end both.
func (a *App) edit(path string) error {
	editor := ""
	for _, name := range []string{"EDITOR", "VISUAL"} { // the last that is set
		if v := a.Getenv(name); v != "" {
			editor = v
		}
	}
	if editor == "" {
		if !a.InTerminal() || !a.OutTerminal() {
			return usagef("there is no terminal to edit %s in\nset EDITOR, or use: deepseek config set KEY VALUE", path)
		}
		editor = "vi"
	}
	cmd := exec.Command("/bin/sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Env, a.streams.In, a.streams.Out, a.streams.Err
	var exit *exec.ExitError
	edited, err := a.startForeground(cmd, syscall.SIGINT, syscall.SIGQUIT)
	if err == nil {
		end := edited.wait()
		if end.signal != nil {
			return end.signal
		}
		err = end.err
	}
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 127:
		return usagef("the editor %q cannot be run\nset VISUAL or EDITOR to one that can", cut(editor))
	case err != nil:
		return &Coded{Exit: ExitFailed, Code: CodeFailed, Message: fmt.Sprintf("the editor %q failed: %v", cut(editor), err), Hint: "what it wrote is in " + path}
	}
	return nil
}
