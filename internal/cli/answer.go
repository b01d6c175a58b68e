package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

type answerOptions struct {
	session  string
	callID   string
	flags    batchFlags
	withdraw bool
	queue    bool
	noInput  bool
	settings map[string]string
}

func newAnswer(a *App, run func(context.Context, *App, answerOptions) error) *cobra.Command {
	var o answerOptions
	cmd := &cobra.Command{
		Use:               "answer SESSION [CALLID]",
		ValidArgsFunction: completeCalls(a),
		Short:             "Answer a question, now or late",
		Long: "Answer a question of a session: in this terminal, or by flags.\n" +
			"A live run is told at once. A session that nobody runs is run on with the answer, and the result is printed.",
		Example: `  deepseek answer last
  deepseek answer last --select demo=short   # the question of: deepseek run --model demo`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("deepseek answer needs SESSION\nsee deepseek answer --help")
			case len(args) > 2:
				return usagef("deepseek answer does not take %q\nsee deepseek answer --help", cut(args[2]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			if len(args) > 1 {
				o.callID = args[1]
			}
			if o.withdraw && (o.flags.given() || o.queue) {
				return usagef("--withdraw takes an answer back and gives none\nleave the other flags out")
			}
			if len(args) > 1 && args[1] == "" {
				return usagef("the call id is empty\nleave it out where just one question waits")
			}
			o.settings = given(cmd.Flags())
			if err := noInput(o.settings, o.noInput); err != nil {
				return err
			}
			if o.noInput && !o.flags.given() && !o.withdraw {
				return usagef("--no-input leaves nobody to ask\nanswer with --select ID=LABEL, --custom ID=TEXT, --skip ID, or --json FILE")
			}
			return run(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.flags.selects, "select", nil, "take an option: `ID=LABEL`; several times for several")
	f.StringArrayVar(&o.flags.customs, "custom", nil, "answer in words: `ID=TEXT`")
	f.StringArrayVar(&o.flags.skips, "skip", nil, "skip the question with the `ID`")
	for name, words := range map[string]func(session.Question) []string{"select": selectWords, "custom": customWords, "skip": skipWords} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeAnswers(a, words)) // the flag is there
	}
	f.StringVar(&o.flags.file, "json", "", "read {\"answers\":[…]} from a `file`, or - for stdin")
	f.BoolVar(&o.withdraw, "withdraw", false, "take back a late answer that is still queued")
	f.BoolVar(&o.queue, "queue", false, "do not run a session that nobody runs: only queue the answer")
	f.BoolVar(&o.noInput, "no-input", false, "ask nobody while the session runs on: the same as --answerer none")
	addSettings(cmd, runSettings...)
	return cmd
}

func runAnswer(ctx context.Context, a *App, o answerOptions) error {
	cfg, err := a.Load(o.settings, true)
	if err != nil {
		return err
	}
	if err := a.NotFromTool("answer"); err != nil {
		return err
	}
	if why := a.noPrompt(); why != "" && !o.flags.given() && !o.withdraw {
		return usagef("there is no terminal to ask in: %s\nanswer with --select ID=LABEL, --custom ID=TEXT, --skip ID, or --json FILE", why)
	}
	if err := a.checkAnswerer(cfg.Answerer); err != nil {
		return err
	}
	fromFile, err := o.flags.read(ctx, a)
	if err != nil {
		return err
	}
	t, err := a.target(cfg, o.session)
	if err != nil {
		return err
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	x := &answering{app: a, cfg: cfg, o: o, t: t, fromFile: fromFile, signals: signals}
	if o.withdraw {
		return a.reach(ctx, cfg, t, x.withdrawLive, x.withdrawDead)
	}
	return a.reach(ctx, cfg, t, x.live, x.dead)
}

// answering is one `answer` at work.
type answering struct {
	app      *App
	cfg      *config.Config
	o        answerOptions
	t        target
	fromFile []session.Answer
	signals  *Signals

	// What became of a late answer that this process took as the owner.
	taken  *performance // to be run on with it; nil if it was not
	queued string       // the message's id, of --queue
}

// fromList is what may be answered of a list of questions. Approvals and plan
// reviews stand in it where the owner lets others answer them.
func fromList(list remote.QuestionList) (open []answerable, settled []string) {
	for _, q := range list.Active {
		open = append(open, answerable{callID: q.CallID, state: q.State, queued: q.Queued, tracked: true, questions: q.Questions})
	}
	for _, w := range list.Waits {
		open = append(open, answerable{callID: w.CallID, kind: w.Kind, state: string(session.QuestionOpen), questions: w.Questions})
	}
	for _, q := range list.Settled {
		settled = append(settled, q.CallID)
	}
	return open, settled
}

// batch is the answers by flags, nil where a person is to be asked. Where a
// reply waits already neither is of use, and that comes before what may be wrong
// with the answers.
func (x *answering) batch(q answerable) (batch []session.Answer, err error) {
	if q.queued {
		return nil, replyQueued(q)
	}
	if !x.o.flags.given() {
		return nil, nil
	}
	if batch, err = x.o.flags.batch(q.questions, x.fromFile); err != nil {
		return nil, err
	}
	if bad := question.CheckAnswers(q.kind, q.questions, batch); bad != nil {
		return nil, notAnswerable(bad.Code, q.state, bad.Message)
	}
	return batch, nil
}

// live answers through the owner of a live session.
func (x *answering) live(ctx context.Context, c *remote.Client) error {
	list, err := c.Questions(ctx)
	if err != nil {
		return err
	}
	open, settled := fromList(list)
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	if err != nil {
		return err
	}
	batch, err := x.batch(q)
	if err != nil {
		return err
	}
	if batch == nil {
		return x.ask(ctx, q, &remoteDesk{Desk: c.Desk(q.callID)})
	}
	via, err := x.deliver(ctx, c, q, batch)
	if err != nil {
		return x.refusal(q, err)
	}
	return x.accepted(q.callID, via)
}

// deliver sends a batch: through the foreground wait while the question is
// open, else late. One that loses to expiry is sent once more, late.
func (x *answering) deliver(ctx context.Context, c *remote.Client, q answerable, batch []session.Answer) (via string, err error) {
	if q.state == string(session.QuestionOpen) {
		won, err := x.foreground(ctx, c.Desk(q.callID), batch)
		if err != nil || won {
			return "foreground", err
		}
		if !q.tracked {
			return "", notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("question %s has ended before the answer arrived", q.callID))
		}
	}
	ok, err := c.Answer(ctx, q.callID, batch)
	if err == nil && !ok {
		return "", x.lostTo(ctx, c, q.callID)
	}
	return "late", err
}

// foreground answers through a claim. False says that another settlement won.
func (x *answering) foreground(ctx context.Context, d *remote.Desk, batch []session.Answer) (won bool, err error) {
	if _, _, err := d.Attach(ctx); err != nil {
		if errors.Is(err, remote.ErrGone) {
			return false, nil
		}
		return false, err
	}
	won, err = d.Respond(ctx, batch)
	var refused *remote.Error
	if errors.As(err, &refused) && refused.Code == remote.CodeNoClaim {
		return false, nil // the wait ended in between
	}
	return won, err
}

// lostTo says what became of a question that takes no answer any more.
func (x *answering) lostTo(ctx context.Context, c *remote.Client, callID string) error {
	state, err := c.State(ctx, callID)
	if err != nil {
		return err
	}
	if state == remote.StateSettled {
		return notAnswerable("NOT_ANSWERABLE", state, fmt.Sprintf("question %s was answered by somebody else first", callID))
	}
	return notAnswerable("NOT_ANSWERABLE", state, fmt.Sprintf("question %s cannot be answered: it is %s", callID, state))
}

// refusal gives a refusal of the owner the exit code of answers, whether it came
// to flags or to a card.
func (x *answering) refusal(q answerable, err error) error {
	var code, message string
	var refused *remote.Error
	var card *prompt.Refused
	switch {
	case errors.As(err, &refused):
		code, message = refused.Code, refused.Message
	case errors.As(err, &card):
		code, message = card.Code, card.Message
	}
	switch code {
	case question.CodeReplyQueued, question.CodeBadAnswer, remote.CodeReadOnlyWait:
		return notAnswerable(code, q.state, message)
	}
	return err
}

// accepted tells that the answer is on disk.
func (x *answering) accepted(callID, via string) error {
	if x.cfg.Output == "text" {
		return nil
	}
	raw, err := session.Marshal(struct {
		SessionID string `json:"sessionId"`
		CallID    string `json:"callId"`
		Accepted  bool   `json:"accepted"`
		Via       string `json:"via"`
	}{x.sessionID(), callID, true, via})
	if err != nil {
		return err
	}
	x.app.Printf("%s\n", raw)
	return nil
}

func (x *answering) sessionID() string {
	if h, err := logstore.ReadHeader(x.t.path); err == nil {
		return h.ID
	}
	return x.t.ref
}

// dead answers a session that nobody runs. A person is asked before the session
// is taken: nobody is kept from it while they think.
func (x *answering) dead(ctx context.Context, own *owner) error {
	open, settled := fromList(listQuestions(&own.state))
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	var batch []session.Answer
	if err == nil {
		batch, err = x.batch(q)
	}
	if err != nil {
		return errors.Join(err, own.close())
	}
	if batch == nil {
		if err := own.close(); err != nil {
			return err
		}
		return x.ask(ctx, q, nobody{})
	}
	if err := x.take(ctx, own, q, batch); err != nil {
		return err
	}
	return x.goOn(ctx)
}

// take accepts a late answer as the session's owner: it is decided on the file
// as repair would leave it, and repair and reply are written only when it is
// accepted and nothing that the run needs is missing. The reply is on disk when
// it returns without an error; after an error the session has been let go.
func (x *answering) take(ctx context.Context, own *owner, q answerable, batch []session.Answer) error {
	text, err := question.DecideAnswer(&own.state, q.callID, batch)
	if err != nil {
		return errors.Join(undecided(q, err), own.close())
	}
	reply := &engine.Input{
		Target: session.NextStep, Content: []session.Block{{Type: session.BlockText, Text: text}}, Source: question.ReplySource(q.callID),
	}
	if x.o.queue {
		own.bare()
		x.queued, err = own.agent.Queue(ctx, reply.Target, reply.Content, reply.Source)
		return errors.Join(err, own.close())
	}
	if err := own.equip(ctx); err != nil {
		return errors.Join(err, own.close())
	}
	p := newPerformance(own, x.signals, nil)
	if err := p.accept(ctx, task{reply: reply}); err != nil {
		p.show.close()
		return errors.Join(err, own.close())
	}
	x.taken = p
	return nil
}

// undecided gives a refusal by the rules its exit code.
func undecided(q answerable, err error) error {
	var bad *question.Error
	var not *question.NotContinued
	switch {
	case errors.As(err, &bad):
		return notAnswerable(bad.Code, q.state, bad.Message)
	case errors.As(err, &not):
		return notAnswerable("NOT_ANSWERABLE", string(not.State), not.Error())
	}
	return err
}

// goOn is what follows a late answer that this process took.
func (x *answering) goOn(ctx context.Context) error {
	if p := x.taken; p != nil {
		return p.run(ctx, []task{{}})
	}
	x.app.Printf("%s\n", x.queued)
	return nil
}

// late sends a late answer to whoever owns the session by now, or takes it.
func (x *answering) late(ctx context.Context, q answerable, batch []session.Answer) error {
	return x.app.reach(ctx, x.cfg, x.t,
		func(ctx context.Context, c *remote.Client) error {
			ok, err := c.Answer(ctx, q.callID, batch)
			if err == nil && !ok {
				return x.lostTo(ctx, c, q.callID)
			}
			return x.refusal(q, err)
		},
		func(ctx context.Context, own *owner) error { return x.take(ctx, own, q, batch) })
}

// ask asks in this terminal. Nil says that the answer is on disk, or that the
// question was closed.
func (x *answering) ask(ctx context.Context, q answerable, desk prompt.Desk) error {
	tty, p, err := x.app.prompter(x.cfg, logstore.DraftsDir(x.t.path), nil)
	if err != nil {
		return err
	}
	forget := x.signals.Last(func() { _ = tty.Restore() }) // the process ends then
	defer forget()
	res, err := p.Run(ctx, permitting(prompt.Card{
		SessionID: x.sessionID(), CallID: q.callID, Kind: prompt.KindQuestion, Timed: q.tracked, Blocking: !q.tracked,
		Continued: q.state == string(session.QuestionContinued), Questions: q.questions,
		AnswerCommand: x.app.answerCommand(x.cfg.Home, x.t.ref, q.callID),
	}, q.kind), &answerDesk{Desk: desk, x: x, q: q})
	if closing := tty.Close(); err == nil {
		err = closing
	}
	switch {
	case errors.Is(err, prompt.ErrGone):
		return notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("question %s has ended meanwhile", q.callID))
	case errors.Is(err, prompt.ErrTerminal):
		return x.unanswered(q, hungUp(ctx, err))
	case err != nil && errors.As(context.Cause(ctx), new(Signal)):
		return x.unanswered(q, context.Cause(ctx))
	case err != nil:
		return x.refusal(q, err)
	}
	switch res.Outcome {
	case prompt.Answered:
		return x.accepted(q.callID, "foreground")
	case prompt.LateAnswered:
		if x.taken != nil || x.queued != "" {
			return x.goOn(ctx)
		}
		return x.accepted(q.callID, "late")
	case prompt.Interrupted:
		return x.unanswered(q, Signal{Signal: interrupt})
	case prompt.Closed:
		return nil // that is on disk
	case prompt.Expired, prompt.HandedOver:
		return notAnswerable("NOT_ANSWERED", "", fmt.Sprintf("question %s was left without an answer", q.callID))
	case prompt.Unknown:
		return &Coded{
			Exit: ExitBusy, Code: "OUTCOME_UNKNOWN", Message: "the owner of the session went away before it answered; whether the answer arrived is not known",
			Hint: "look with: " + x.app.command(x.cfg.Home, "questions", x.t.ref),
		}
	}
	return notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("question %s was settled elsewhere", q.callID))
}

// unanswered is the error of a card that a signal ended: it recorded nothing.
func (x *answering) unanswered(q answerable, err error) error {
	var sig Signal
	if !errors.As(err, &sig) {
		return err
	}
	return &Coded{
		Exit: sig.Exit(), Code: CodeAborted, Message: sig.Error(),
		Hint: "no answer was recorded; answer it with: " + x.app.answerCommand(x.cfg.Home, x.t.ref, q.callID),
	}
}

// hangupTime is how long the signal may lag behind the loss of the terminal.
const hangupTime = 300 * time.Millisecond

// hungUp is the failure of a terminal: where it was closed, the signal that
// says so is the reason.
func hungUp(ctx context.Context, err error) error {
	late := time.NewTimer(hangupTime)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return err
	}
}

// withdrawLive takes a queued answer back through the owner.
func (x *answering) withdrawLive(ctx context.Context, c *remote.Client) error {
	list, err := c.Questions(ctx)
	if err != nil {
		return err
	}
	id, err := x.queuedCall(list)
	if err != nil {
		return err
	}
	ok, err := c.Withdraw(ctx, id)
	if err == nil && !ok {
		err = notAnswerable("NOT_QUEUED", "", fmt.Sprintf("question %s has no queued reply that could be taken back", id))
	}
	return err
}

func (x *answering) withdrawDead(ctx context.Context, own *owner) (err error) {
	defer func() { err = errors.Join(err, own.close()) }()
	id, err := x.queuedCall(listQuestions(&own.state))
	if err != nil {
		return err
	}
	own.bare()
	_, err = own.agent.DiscardIf(ctx, func(st *session.State) (string, error) { return question.DecideWithdraw(st, id) })
	var not *question.NotContinued
	var gone *question.NotQueued
	if errors.As(err, &not) || errors.As(err, &gone) {
		return notAnswerable("NOT_QUEUED", "", err.Error())
	}
	return err
}

// queuedCall is the question whose queued reply --withdraw means.
func (x *answering) queuedCall(list remote.QuestionList) (string, error) {
	open, settled := fromList(list)
	var queued []answerable
	for _, q := range open {
		if q.queued {
			q.queued = false // pick leaves out those that have a reply
			queued = append(queued, q)
		}
	}
	if x.o.callID == "" && len(queued) == 0 {
		return "", notAnswerable("NOT_QUEUED", "", fmt.Sprintf("no reply is queued in session %s", x.t.ref))
	}
	if x.o.callID == "" {
		open = queued
	}
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	return q.callID, err
}
