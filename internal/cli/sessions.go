package cli

import (
	"context"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
)

type sessionsOptions struct {
	json     bool
	all      bool     // list: sub-agents' too
	out      string   // export: the folder to put it into
	sessions []string // as the person names them
}

type sessionsRun = func(context.Context, *App, sessionsOptions) error

// newSessions is a group; `sessions` alone is its list.
func newSessions(a *App) *cobra.Command {
	cmd := newSessionsList(a, runSessionsList)
	list := newSessionsList(a, runSessionsList)
	cmd.Use = "sessions"
	cmd.Short = "List, export, check or remove sessions"
	cmd.Args = unknownCommand
	list.Example = `  deepseek sessions list
  deepseek sessions list --all --json`
	cmd.AddCommand(list, newSessionsRm(a, runSessionsRm), newSessionsPath(a, runSessionsPath),
		newSessionsExport(a, runSessionsExport), newSessionsCheck(a, runSessionsCheck))
	return cmd
}

func newSessionsList(a *App, run sessionsRun) *cobra.Command {
	var o sessionsOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions, the latest used first",
		Long:  "List the sessions, the latest used first: id, age, live or idle, questions that wait for an answer, working directory, first words of the task.",
		Example: `  deepseek sessions
  deepseek sessions --json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array of objects")
	cmd.Flags().BoolVar(&o.all, "all", false, "the sessions of sub-agents too")
	return cmd
}

func newSessionsPath(a *App, run sessionsRun) *cobra.Command {
	return &cobra.Command{
		Use:   "path SESSION",
		Short: "Print where the file of a session is",
		Example: `  deepseek sessions path last
  tail -n 1 "$(deepseek sessions path last)"`,
		Args:              arguments("SESSION"),
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, sessionsOptions{sessions: args})
		},
	}
}

func runSessionsPath(_ context.Context, a *App, o sessionsOptions) error {
	_, paths, err := a.locate(o.sessions)
	if err != nil {
		return err
	}
	a.Printf("%s\n", a.visible(paths[0]))
	return nil
}

// locate finds the files that session arguments name, all or none. It comes
// before all that is shown of them.
func (a *App) locate(args []string) (*logstore.Store, []string, error) {
	home, err := a.Home()
	if err != nil {
		return nil, nil, err
	}
	cwd, err := a.Cwd()
	if err != nil {
		return nil, nil, err
	}
	a.lookForKey()
	store := a.store(home)
	paths := make([]string, len(args))
	for i, arg := range args {
		if paths[i], err = store.Locate(arg, cwd); err != nil {
			return nil, nil, err
		}
	}
	return store, paths, nil
}

// atMost is the Args of a command that takes the named arguments or fewer.
func atMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return arguments(names...)(cmd, args)
	}
}
