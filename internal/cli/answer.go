package cli

import (
	"context"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
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
