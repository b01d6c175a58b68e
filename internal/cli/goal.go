package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

type goalOptions struct {
	session   string
	action    string
	objective string // of edit
	json      bool
}

// Actions of the command.
const (
	goalShow  = "show"
	goalClear = "clear"
)

var goalActions = []string{goalShow, session.GoalEdit, session.GoalPause, session.GoalResume, goalClear}

func newGoal(a *App, run func(context.Context, *App, goalOptions) error) *cobra.Command {
	var o goalOptions
	cmd := &cobra.Command{
		Use:   "goal SESSION [show | edit OBJECTIVE | pause | resume | clear]",
		Short: "Show or change the goal of a session",
		Long: "Show or change the goal of a session: an id, a part of one, last, or a path to its file.\n" +
			"A session that is being worked on can be shown only. A goal that is resumed gets rounds from the next `run --goal-resume` on.",
		Example: `  deepseek goal last
  deepseek goal last --json`,
		Args: func(_ *cobra.Command, args []string) error { return o.read(args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return goalActions, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the goal as one JSON object")
	return cmd
}

// read takes the arguments.
func (o *goalOptions) read(args []string) error {
	if len(args) == 0 {
		return usagef("deepseek goal needs SESSION\nsee deepseek goal --help")
	}
	o.session, o.action = args[0], goalShow
	if len(args) > 1 {
		o.action = args[1]
	}
	if err := oneOf("action", o.action, goalActions); err != nil {
		return err
	}
	want := 2
	if o.action == session.GoalEdit {
		want = 3
		if len(args) < want {
			return usagef("edit needs the new objective\nsay it: deepseek goal %s edit OBJECTIVE", quote(cut(o.session)))
		}
		o.objective = args[2]
	}
	if len(args) > want {
		return usagef("%s does not take %q\nput the objective of edit in quotes", o.action, cut(args[want]))
	}
	return nil
}

func runGoal(ctx context.Context, a *App, o goalOptions) error {
	if o.action != goalShow {
		if err := a.NotFromTool("goal " + o.action); err != nil {
			return err
		}
	}
	cfg, err := a.Load(nil, false)
	if err != nil {
		return err
	}
	t, err := a.target(cfg, o.session)
	if err != nil {
		return err
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	if o.action == goalShow {
		gs, h, err := readGoals(ctx, t.path)
		if err != nil {
			return err
		}
		return a.printGoal(o.json, h.ID, gs)
	}
	own, err := a.claim(ctx, cfg, t)
	if err != nil {
		return err
	}
	gs, err := own.changeGoal(ctx, o)
	if err = errors.Join(err, own.close()); err != nil {
		return err
	}
	return a.printGoal(o.json, own.header.ID, gs)
}

// readGoals folds a session's goal out of its file, without a lock.
func readGoals(ctx context.Context, path string) (session.Goals, session.Header, error) {
	var gs session.Goals
	end, err := logstore.Read(ctx, path, func(l logstore.Line) error {
		switch l.Type {
		case session.TypeGoalChange, session.TypeUserMessage:
		default:
			return nil
		}
		e, err := l.Event()
		if err == nil {
			err = gs.Apply(e)
		}
		return placed(err, path, l)
	})
	return gs, end.Header, err
}

// changeGoal is a person's own change of a session that nobody runs. The owner
// is claimed, and decides on what its log says.
func (o *owner) changeGoal(ctx context.Context, opts goalOptions) (session.Goals, error) {
	o.bare()
	err := o.agent.ChangeGoal(ctx, func(st *session.State) (*session.Goal, error) {
		g, ok := st.Goals.Goal()
		if !ok {
			return nil, usagef("session %s has no goal\nset one: %s", o.ref, o.app.command(o.cfg.Home, "run", "--session", o.ref, "--goal", "OBJECTIVE"))
		}
		if opts.action == goalClear {
			return nil, nil
		}
		next, err := st.Goals.Update(session.GoalUpdate{ID: g.ID, Revision: g.Revision, Action: opts.action, Objective: opts.objective})
		var refused *session.GoalError
		if errors.As(err, &refused) {
			return nil, usagef("%s\nsee how it stands: %s", refused.Message, o.app.command(o.cfg.Home, "goal", o.ref))
		}
		return &next, err
	})
	var gs session.Goals
	o.agent.View(func(st *session.State) { gs = st.Goals })
	return gs, err
}

func (a *App) printGoal(asJSON bool, id string, gs session.Goals) error {
	g, ok := gs.Goal()
	if asJSON {
		answer := struct {
			SessionID string        `json:"sessionId"`
			Goal      *session.Goal `json:"goal"`
		}{SessionID: id}
		if ok {
			answer.Goal = &g
		}
		line, err := session.Marshal(answer)
		if err != nil {
			return err
		}
		a.Printf("%s\n", line)
		return nil
	}
	if !ok {
		a.Printf("no goal\n")
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  revision %d, %d of %d rounds\n%s\n", g.Phase, g.Revision, g.Rounds, g.MaxRounds, g.Objective)
	if g.BlockedReason != "" {
		fmt.Fprintf(&b, "blocked: %s\n", g.BlockedReason)
	}
	a.Printf("%s", a.visible(b.String()))
	return nil
}
