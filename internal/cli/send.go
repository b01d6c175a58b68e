package cli

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"deepseek/internal/remote"
	"deepseek/internal/session"
)

type sendOptions struct {
	session string
	message string
	steer   bool
}

func newSend(a *App, run func(context.Context, *App, sendOptions) error) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:               "send SESSION MESSAGE",
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		Short:             "Queue a message for a session",
		Long: "Queue a message for a session and print its id, once it is on disk.\n" +
			"A live run takes it up; otherwise the next run of the session does. The id proves that the message is queued, and promises nothing more.",
		Example: `  deepseek send last "and then run the tests"
  deepseek send --steer last "leave the docs alone"`,
		Args: arguments("SESSION", "MESSAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session, o.message = args[0], args[1]
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.steer, "steer", false, "for the next step of the turn in hand, instead of a turn of its own")
	return cmd
}

func runSend(ctx context.Context, a *App, o sendOptions) error {
	if err := a.NotFromTool("send"); err != nil {
		return err
	}
	if strings.TrimSpace(o.message) == "" {
		return usagef("the message is empty\nsay what the session is to be told")
	}
	if !utf8.ValidString(o.message) {
		return usagef("the message is not UTF-8 text\nconvert it first, for instance with iconv")
	}
	cfg, err := a.Load(nil, false)
	if err != nil {
		return err
	}
	t, err := a.target(cfg, o.session)
	if err != nil {
		return err
	}
	content := []session.Block{{Type: session.BlockText, Text: o.message}}
	var id string
	err = a.reach(ctx, cfg, t,
		func(ctx context.Context, c *remote.Client) (err error) {
			if o.steer {
				id, err = c.Steer(ctx, content)
			} else {
				id, err = c.Prompt(ctx, content)
			}
			return err
		},
		func(ctx context.Context, own *owner) (err error) {
			defer func() { err = errors.Join(err, own.close()) }()
			list := session.NextTurn
			if o.steer {
				list = session.NextStep
			}
			own.bare()
			id, err = own.agent.Queue(ctx, list, content, session.Source{Kind: session.SourceUser})
			return err
		})
	if err != nil {
		return err
	}
	a.Printf("%s\n", id)
	return nil
}
