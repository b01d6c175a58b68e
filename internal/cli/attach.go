package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/view"
)

type attachOptions struct {
	session  string
	settings map[string]string
}

func newAttach(a *App, run func(context.Context, *App, attachOptions) error) *cobra.Command {
	var o attachOptions
	cmd := &cobra.Command{
		Use:               "attach SESSION",
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		Short:             "Answer whatever a live run asks",
		Long:              "Stay beside a live run, in this terminal, and answer whatever it asks. It ends when the run ends, or by Ctrl+C.",
		Example: `  deepseek attach last
  deepseek attach last --quiet`,
		Args: arguments("SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			o.settings = given(cmd.Flags())
			return run(cmd.Context(), a, o)
		},
	}
	addSettings(cmd, "color", "quiet")
	return cmd
}

func runAttach(ctx context.Context, a *App, o attachOptions) error {
	cfg, err := a.Load(o.settings, false)
	if err != nil {
		return err
	}
	if err := a.NotFromTool("attach"); err != nil {
		return err
	}
	t, err := a.target(cfg, o.session)
	if err != nil {
		return err
	}
	owner, err := logstore.ReadOwner(t.path)
	if err != nil || owner.Socket == "" {
		return a.notLive(cfg, t)
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	c, err := a.dialOwner(ctx, cfg, t, owner)
	if err != nil {
		return err
	}
	if ofRoot(t.path, owner) {
		return errors.Join(a.reachable(ctx, cfg.Home, owner.Busy(t.path)), c.Close())
	}
	if why := a.noPrompt(); why != "" {
		return errors.Join(usagef("attach needs a terminal: %s\nanswer with `deepseek answer` and its flags instead", why), c.Close())
	}
	at := &attachment{app: a, cfg: cfg, t: t, client: c, seen: map[string]bool{}}
	return errors.Join(at.run(ctx, signals), c.Close())
}

// notLive is the refusal where no run asks anything.
func (a *App) notLive(cfg *config.Config, t target) error {
	return &Coded{Exit: ExitBusy, Code: "NOT_LIVE", Message: "nobody runs session " + t.ref + " now", Hint: "answer its questions with: " + a.command(cfg.Home, "answer", t.ref)}
}

// dialOwner connects to the owner of a session. One that takes the connection and
// has too much to do to say a word is waited for, as long as reach does; one that
// is leaving asks nothing any more and is none.
func (a *App) dialOwner(ctx context.Context, cfg *config.Config, t target, owner logstore.Owner) (*remote.Client, error) {
	bound, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	c, err := remote.Dial(bound, owner.Socket, remote.WithRedact(a.key().Bytes))
	var refused *remote.Error
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case bound.Err() != nil:
		return nil, a.reachable(ctx, cfg.Home, logstore.Unanswered(t.path))
	case errors.Is(err, remote.ErrNotDelivered):
		return nil, a.notLive(cfg, t)
	case errors.As(err, &refused) && refused.Code == remote.CodeCallerIsTool:
		return nil, &Coded{Exit: ExitUsage, Code: refused.Code, Message: refused.Message}
	case errors.As(err, &refused) && refused.Code == remote.CodeOwnerLeaving:
		return nil, &Coded{
			Exit: ExitBusy, Code: "NOT_LIVE", Message: "the run of session " + t.ref + " is over",
			Hint: fmt.Sprintf("answer its questions, once process %d has ended, with: %s", owner.PID, a.command(cfg.Home, "answer", t.ref)),
		}
	}
	return nil, err
}

// attachment is one `attach` at work. seen belongs to run's goroutine; each
// card runs in one of its own, which run waits for.
type attachment struct {
	app    *App
	cfg    *config.Config
	t      target
	client *remote.Client
	seen   map[string]bool
	work   sync.WaitGroup
}

func (at *attachment) run(ctx context.Context, signals *Signals) (err error) {
	screen := view.NewScreen(at.app.Err, view.ScreenOptions{
		Terminal: true, Cursor: at.app.Cursor(), Colour: at.app.Colour(at.cfg), ASCII: !at.app.UTF8(), Width: at.app.Width, Quiet: at.cfg.Quiet,
	})
	defer screen.Close()
	tty, p, err := at.app.prompter(at.cfg, logstore.DraftsDir(at.t.path), screen)
	if err != nil {
		return err
	}
	defer signals.Last(func() { _ = tty.Restore() })() // the process ends then
	defer func() { err = errors.Join(err, tty.Close()) }()
	defer at.work.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The log itself is not shown: the subscription begins behind its end.
	sub, err := at.client.Subscribe(ctx, math.MaxInt32)
	if err != nil {
		return err
	}
	screen.Note("attached to session " + at.t.ref + "; its questions are asked here, Ctrl+C leaves")
	list, err := at.client.Questions(ctx)
	if err != nil {
		return err
	}
	open, _ := fromList(list)
	for _, q := range open {
		if q.state == remote.StateOpen {
			at.draw(ctx, cancel, screen, p, q)
		}
	}
	for {
		n, err := sub.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			screen.Note("the run of session " + at.t.ref + " has ended")
			return nil
		case err != nil:
			return err
		case n.Request != nil:
			at.draw(ctx, cancel, screen, p, answerable{
				callID: n.Request.CallID, kind: n.Request.Kind, state: remote.StateOpen, tracked: n.Request.Kind == question.KindQuestion, questions: n.Request.Questions,
			})
		}
	}
}

// draw asks one question in a goroutine of its own; the cards take turns, in the order asked.
func (at *attachment) draw(ctx context.Context, cancel context.CancelCauseFunc, screen *view.Screen, p *prompt.Prompter, q answerable) {
	if at.seen[q.callID] {
		return
	}
	at.seen[q.callID] = true
	card := p.Join(permitting(prompt.Card{
		SessionID: at.t.ref, CallID: q.callID, Kind: prompt.KindQuestion, Timed: q.tracked, Blocking: !q.tracked,
		Questions: q.questions, AnswerCommand: at.app.answerCommand(at.cfg.Home, at.t.ref, q.callID),
	}, q.kind), &remoteDesk{Desk: at.client.Desk(q.callID)})
	at.work.Go(func() {
		res, err := card(ctx)
		switch {
		case err == nil && res.Outcome == prompt.Interrupted:
			cancel(Signal{Signal: interrupt})
		case errors.Is(err, prompt.ErrTerminal):
			cancel(err)
		case err != nil && !errors.Is(err, prompt.ErrGone) && ctx.Err() == nil:
			screen.Note("question " + q.callID + " is not asked here: " + err.Error())
		}
	})
}
