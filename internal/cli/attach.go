package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

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
	l := newLine(c, func(ctx context.Context) (*remote.Client, error) { return a.connect(ctx, cfg, t) })
	at := &attachment{app: a, cfg: cfg, t: t, line: l, seen: map[string]bool{}}
	return errors.Join(at.run(ctx, signals), l.close())
}

// codeNotLive is the code of a session whose questions nobody asks now.
const codeNotLive = "NOT_LIVE"

// notLive is the refusal where no run asks anything.
func (a *App) notLive(cfg *config.Config, t target) error {
	return &Coded{Exit: ExitBusy, Code: codeNotLive, Message: "nobody runs session " + t.ref + " now", Hint: "answer its questions with: " + a.command(cfg.Home, "answer", t.ref)}
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
			Exit: ExitBusy, Code: codeNotLive, Message: "the run of session " + t.ref + " is over",
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
	line   *line
	seen   map[string]bool
	work   sync.WaitGroup
	screen *view.Screen
	prompt *prompt.Prompter
	cancel context.CancelCauseFunc // ends all of it
}

func (at *attachment) run(ctx context.Context, signals *Signals) (err error) {
	at.screen = view.NewScreen(at.app.Err, view.ScreenOptions{
		Terminal: true, Cursor: at.app.Cursor(), Colour: at.app.Colour(at.cfg), ASCII: !at.app.UTF8(), Width: at.app.Width, Quiet: at.cfg.Quiet,
		Background: background(at.app.streams.Err),
	})
	defer at.screen.Close()
	tty, p, err := at.app.prompter(at.cfg, at.t.path, at.screen)
	if err != nil {
		return err
	}
	at.prompt = p
	defer signals.Last(func() { _ = tty.Restore() })() // the process ends then
	defer func() { err = errors.Join(err, tty.Close()) }()
	defer at.work.Wait()
	ctx, at.cancel = context.WithCancelCause(ctx)
	defer at.cancel(nil)

	attached := "attached to session " + at.t.ref + "; its questions are asked here, Ctrl+C leaves"
	for {
		c, err := at.line.client(ctx)
		var no *Coded
		if errors.As(err, &no) && no.Code == codeNotLive {
			at.screen.Note("the run of session " + at.t.ref + " has ended")
			return nil
		}
		if err != nil {
			return err
		}
		err = at.follow(ctx, c, attached)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !lostAlone(c, err):
			return err
		}
		pause := time.NewTimer(reachPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
		attached = "the connection was lost; attached to session " + at.t.ref + " again"
	}
}

// lostAlone tells whether the connection is all that was lost: the owner has left,
// or has left a client that was stopped for too long. Which of the two it was shows
// in connecting again.
func lostAlone(c *remote.Client, err error) bool {
	select {
	case <-c.Done():
	default:
		return false
	}
	var why *remote.Error
	if !errors.As(err, &why) {
		return true
	}
	switch why.Code {
	case remote.CodeClientSilent, remote.CodeClientTooSlow, remote.CodeOwnerLeaving:
		return true
	}
	return false // it would say so again
}

// follow asks what the owner asks, for as long as the connection lasts. attached is
// what the person is told when it works.
func (at *attachment) follow(ctx context.Context, c *remote.Client, attached string) error {
	// The log itself is not shown: the subscription begins behind its end.
	sub, err := c.Subscribe(ctx, math.MaxInt32)
	if err != nil {
		return err
	}
	at.screen.Note(attached)
	list, err := c.Questions(ctx)
	if err != nil {
		return err
	}
	open, _ := fromList(list)
	for _, q := range open {
		if q.state == remote.StateOpen {
			at.draw(ctx, q)
		}
	}
	for {
		n, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		if n.Request != nil {
			at.draw(ctx, answerable{
				callID: n.Request.CallID, kind: n.Request.Kind, state: remote.StateOpen, tracked: n.Request.Kind == question.KindQuestion, questions: n.Request.Questions,
			})
		}
	}
}

// draw asks one question in a goroutine of its own; the cards take turns, in the order asked.
func (at *attachment) draw(ctx context.Context, q answerable) {
	if at.seen[q.callID] {
		return
	}
	at.seen[q.callID] = true
	desk := &remoteDesk{line: at.line, callID: q.callID}
	join := func() func(context.Context) (prompt.Result, error) {
		return at.prompt.Join(permitting(prompt.Card{
			SessionID: at.t.ref, CallID: q.callID, Kind: prompt.KindQuestion, Timed: q.tracked, Blocking: !q.tracked,
			Questions: q.questions, AnswerCommand: at.app.answerCommand(at.cfg.Home, at.t.ref, q.callID),
		}, q.kind), desk)
	}
	card := join() // here, so that the first that is asked comes first
	at.work.Go(func() {
		res, err := card(ctx)
		for err == nil && res.Outcome == prompt.Unknown && at.waits(ctx, desk) {
			res, err = join()(ctx)
		}
		switch {
		case err == nil && res.Outcome == prompt.Interrupted:
			at.cancel(Signal{Signal: interrupt})
		case errors.Is(err, prompt.ErrTerminal):
			at.cancel(err)
		case err != nil && !errors.Is(err, prompt.ErrGone) && ctx.Err() == nil:
			at.screen.Note("question " + q.callID + " is not asked here: " + err.Error())
		}
	})
}

// waits tells whether a question that a card has lost sight of is still asked.
func (at *attachment) waits(ctx context.Context, d *remoteDesk) bool {
	state, err := d.State(ctx)
	return err == nil && state == remote.StateOpen
}
