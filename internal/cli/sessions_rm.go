package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/view"
)

func newSessionsRm(a *App, run sessionsRun) *cobra.Command {
	return &cobra.Command{
		Use:   "rm SESSION...",
		Short: "Remove sessions and all that belongs to them",
		Long: "Remove sessions and all that belongs to them: logs, spilled outputs, drafts, and the sessions of their sub-agents.\n" +
			"Where one of them is live, none is removed.",
		Example: `  deepseek sessions rm last
  deepseek sessions export last -o /tmp && deepseek sessions rm last`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return arguments("SESSION")(cmd, args)
		},
		ValidArgsFunction: completeSessions(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, sessionsOptions{sessions: args})
		},
	}
}

func runSessionsRm(ctx context.Context, a *App, o sessionsOptions) error {
	if err := a.NotFromTool("removing a session"); err != nil {
		return err
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	home, err := a.Home()
	if err != nil {
		return err
	}
	store, paths, err := a.locate(o.sessions)
	if err != nil {
		return err
	}
	var all []string
	for _, path := range paths {
		members, err := removable(ctx, store, home, path)
		if err != nil {
			return err
		}
		for _, m := range members {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	// All are looked at before the first is removed. Remove takes the lock, and
	// a session comes before its sub-agents, so one that is taken meanwhile
	// loses nothing.
	for _, path := range all {
		if o, live := store.LiveOwner(ctx, path); live {
			return a.reachable(ctx, home, o.Busy(path))
		}
	}
	for i, path := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err := a.reachable(ctx, home, store.Remove(ctx, path)); {
		case errors.Is(err, logstore.ErrNotFound): // by somebody else
		case err != nil && i > 0:
			return fmt.Errorf("%w\nof %d session files, %d were removed", err, len(all), i)
		case err != nil:
			return err
		default:
			a.Warnf("removed %s\n", view.OneLine(fileID(path)))
		}
	}
	return nil
}

// removable is the family of a session that may be removed. A file of the store
// is a session by its place, however damaged; one elsewhere must say so itself.
func removable(ctx context.Context, store *logstore.Store, home, path string) ([]string, error) {
	inside, err := inStore(home, path)
	if err != nil {
		return nil, err
	}
	if !inside {
		if _, err := logstore.ReadHeader(path); err != nil {
			return nil, err
		}
	}
	return family(ctx, store, home, path)
}
