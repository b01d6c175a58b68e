package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/engine"
	"deepseek/internal/model"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

type runOptions struct {
	tasks    taskSource
	session  string
	begin    beginning
	answers  string // file of scripted answers
	noInput  bool
	settings map[string]string
}

func newRun(a *App, run func(context.Context, *App, runOptions) error) *cobra.Command {
	var o runOptions
	var last bool
	cmd := &cobra.Command{
		Use:   "run [TASK | -]",
		Short: "Work on a task until it is done",
		Long: "Work on a task until it is done, and print the final response.\n" +
			"A new session is begun unless --session or --continue names an old one; its log is all that a later run needs.",
		Example: `  deepseek run --model demo "what is here?"
  echo "what is here?" | deepseek run --model demo --output json -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("session") && o.session == "" {
				return usagef("--session is empty\ngive an id, part of one, last, or a path; deepseek sessions lists them")
			}
			if last && o.session != "" {
				return usagef("--continue and --session name two sessions\ngive one of them")
			}
			if last {
				o.session = "last"
			}
			o.tasks.args = args
			o.tasks.fileGiven = cmd.Flags().Changed("file")
			o.settings = given(cmd.Flags())
			if err := noInput(o.settings, o.noInput); err != nil {
				return err
			}
			if err := o.begin.read(cmd.Flags(), o.session != ""); err != nil {
				return err
			}
			return run(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.tasks.file, "file", "f", "", "read the task from a `file`")
	f.StringVar(&o.session, "session", "", "go on with a `session`: id, part of it, last, or a path")
	_ = cmd.RegisterFlagCompletionFunc("session", completeSessions(a)) // the flag is there
	f.BoolVarP(&last, "continue", "c", false, "go on with the last session of this directory")
	f.StringVar(&o.tasks.script, "script", "", "run the tasks of a YAML `file`, one after the other, in one session")
	f.StringVar(&o.answers, "answers", "", "answer questions from a YAML `file`")
	o.begin.flags(f)
	f.BoolVar(&o.noInput, "no-input", false, "ask nobody: the same as --answerer none")
	addSettings(cmd, runSettings...)
	return cmd
}

// runSettings are the settings of commands that run the agent.
var runSettings = []string{
	"model", "base_url", "effort", "max_tokens", "temperature", "mode", "timeout", "max_timeout", "answerer",
	"permission", "approve", "max_steps", "max_duration", "max_goal_rounds", "on_question", "fail_on_pending", "output", "color", "quiet", "verbose",
}

// noInput is --no-input, another word for --answerer none.
func noInput(settings map[string]string, given bool) error {
	if !given {
		return nil
	}
	if v, ok := settings["answerer"]; ok && v != answererNone {
		return usagef("--no-input and --answerer %s contradict each other\ngive one of them", cut(v))
	}
	settings["answerer"] = answererNone
	return nil
}

func runRun(ctx context.Context, a *App, o runOptions) error {
	cfg, err := a.Load(o.settings, true)
	if err != nil {
		return err
	}
	tasks, err := o.tasks.read(ctx, a, o.session != "" || o.begin.withGoal())
	if err != nil {
		return err
	}
	if o.session != "" {
		if err := a.NotFromTool("run --session"); err != nil {
			return err
		}
	}
	if err := a.checkAnswerer(cfg.Answerer); err != nil {
		return err
	}
	var answers *question.Script
	if o.answers != "" {
		if answers, err = question.LoadAnswers(o.answers); err != nil {
			return usagef("%v\n%s", err, fileAdvice(err, "--answers FILE", "an entry is {match: {id, header or question}, and one of select, custom, skip}"))
		}
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	cwd, err := a.Cwd()
	if err != nil {
		return err
	}
	own := a.newSession(cfg, cwd)
	if o.session != "" {
		t, err := a.target(cfg, o.session)
		if err != nil {
			return err
		}
		if own, err = a.claim(ctx, cfg, t); err != nil {
			return err
		}
	}
	if len(tasks) == 0 && !own.state.Inbox.Waiting() && !o.begin.withGoal() {
		return errors.Join(usagef("there is no task, and nothing is queued in session %s\ngive one: deepseek run --session %[1]s TASK", own.ref), own.close())
	}
	p := newPerformance(own, signals, answers)
	if p.goal, err = o.begin.start(own); err != nil {
		return errors.Join(err, own.close())
	}
	p.plan = o.begin.plan
	// Nothing is started, MCP servers neither, before all that is known to be wrong has been told.
	if err := own.settle(); err != nil {
		return errors.Join(err, own.close())
	}
	for n, t := range tasks {
		if mode := cmp.Or(t.mode, own.settings.Mode); t.timeout != nil && mode == config.Legacy {
			return errors.Join(usagef("%s: task %d: timeout has no place in legacy mode\nadd mode: timed, or leave it out", o.tasks.script, n+1), own.close())
		}
	}
	if err := own.equip(ctx); err != nil {
		return errors.Join(err, own.close())
	}
	return p.run(ctx, tasks)
}

// errDuration is the cause of a run that --max-duration ended.
var errDuration = errors.New("the time of --max-duration is up")

// canceled is the end of a context as the engine logs it.
func canceled(ctx context.Context) *engine.Canceled {
	if errors.Is(context.Cause(ctx), errDuration) {
		return &engine.Canceled{Cause: session.Cause{Kind: session.CauseHook, Hook: "duration"}}
	}
	return &engine.Canceled{Cause: session.Cause{Kind: session.CauseUser}}
}

// performance is one or more owned runs of a session, and what stdout and
// stderr show of them.
type performance struct {
	*owner
	signals *Signals
	answers *question.Script  // may be nil
	plan    bool              // of the first interval: it begins in plan mode
	goal    *engine.GoalStart // of the first interval; may be nil
	show    *show
	pump    *pump
	asking  *asking
	abort   context.CancelCauseFunc // ends the run with an error of ours

	planned  bool  // the session is in plan mode when the run begins
	accepted bool  // accept has opened the first interval
	from     int64 // the seq before what it wrote

	asRun    session.Settings // where a task of a script says nothing else
	maxSteps int              // of the task in hand
}

func newPerformance(o *owner, signals *Signals, answers *question.Script) *performance {
	return &performance{
		owner: o, signals: signals, answers: answers, show: newShow(o), maxSteps: o.cfg.MaxSteps, planned: o.state.Plan,
	}
}

// run performs the tasks in order, none meaning what is queued alone. It stops
// at the first that does not end well, and leaves nothing running.
func (p *performance) run(ctx context.Context, tasks []task) (err error) {
	defer func() { err = p.end(err) }()
	if len(tasks) == 0 {
		tasks = []task{{}}
	}
	p.asRun = p.settings
	ctx, p.abort = context.WithCancelCause(ctx)
	defer p.abort(nil)
	if d := p.cfg.MaxDuration; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errDuration)
		defer cancel()
	}
	for i, t := range tasks {
		if len(tasks) > 1 || t.own() {
			if err := p.apply(t); err != nil {
				return err
			}
		}
		if err := p.one(ctx, t, i == len(tasks)-1); err != nil {
			return err
		}
	}
	return nil
}

// next is the seq of the first event that is not in the log yet.
func (p *performance) next() (seq int64) {
	p.agent.View(func(st *session.State) { seq = st.Next - int64(len(p.closers)) })
	return seq
}

// accept opens the first interval ahead of run: the input is on disk when it returns.
func (p *performance) accept(ctx context.Context, t task) error {
	p.from = p.next()
	_, err := p.agent.Begin(ctx, engine.RunOptions{Input: t.input()})
	p.accepted = err == nil
	return err
}

// one performs one task as one owned interval.
func (p *performance) one(ctx context.Context, t task, last bool) error {
	from := p.next()
	if p.accepted {
		from, p.accepted = p.from, false
	}
	canceling, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(canceled(ctx)) })
	defer stop()

	var begin error
	started := func(string) {
		if begin = p.begin(from); begin != nil {
			p.abort(begin)
		}
	}
	options := engine.RunOptions{Input: t.input(), Plan: p.plan, Goal: p.goal, Leave: last}
	before := p.goalNow()
	res, end, err := p.agent.Run(canceling, options, started)
	for errors.Is(err, engine.ErrRunning) {
		// Between two tasks of a script somebody sent a message: it is served first.
		if err = p.agent.WhenIdle(ctx); err == nil {
			res, end, err = p.agent.Run(canceling, options, started)
		}
	}
	if last {
		p.stopAccepting() // before anything waits for who reads the output
	}
	if p.pump != nil {
		err = errors.Join(err, p.pump.drain())
	}
	p.plan, p.goal = false, nil
	p.waiting(&res)
	if model.LeaksCall(res.FinalResponse) {
		p.show.screen.Announce("deepseek: warning: the answer holds the markup of a tool call that the server let through as text; it was not run, and the answer is probably unfinished")
	}
	if err = errors.Join(begin, err); err == nil {
		p.goalNote(before)
		err = p.verdict(ctx, &res, end)
	}
	if p.asking != nil && (last || err != nil) {
		p.asking.clear() // the result is not to be printed into a card
	}
	if err = p.show.result(&res, err); last || err != nil {
		p.app.jobSummary(&res)
	}
	if last && err == nil {
		p.show.next(&res)
	}
	return err
}

// begin makes the run visible, once its first receipt is on disk: the id on
// stderr, what happens on the screen, and the socket for other shells.
func (p *performance) begin(from int64) error {
	if p.pump != nil {
		return nil // of an earlier task
	}
	p.show.begin()
	if p.planned {
		p.show.screen.Note(view.InPlanMode)
	}
	p.serve()
	asking, err := p.startAsking(p.show.screen, p.answers, p.badAnswers, func() { p.signals.Raise(syscall.SIGINT) })
	if err != nil {
		return err
	}
	p.asking = asking
	p.signals.Last(func() {
		asking.restore()
		p.show.echo.On()
		p.shell.Kill()
		p.hooks.kill()
	})
	pump, err := p.startPump(from, p.show, p.show.streams())
	if err != nil {
		return fmt.Errorf("follow the run: %w", err)
	}
	p.pump = pump
	return nil
}

// badAnswers ends the run: an entry of --answers does not fit its question.
func (p *performance) badAnswers(err error) {
	p.abort(&Coded{Exit: ExitFailed, Code: question.CodeBadAnswer, Message: err.Error(), Hint: "correct the file of --answers, and go on with: " + p.app.command(p.cfg.Home, "run", "--session", p.ref, "go on")})
}

// end leaves nothing running, and frees the session.
func (p *performance) end(err error) error {
	var closed error
	if p.asking != nil {
		closed = p.asking.close()
	}
	closed = errors.Join(closed, p.close())
	if p.pump != nil {
		closed = errors.Join(closed, p.pump.close())
	}
	p.show.close()
	if err != nil {
		return err
	}
	return closed
}

// apply takes up what a task of a script says for itself.
func (p *performance) apply(t task) error {
	s, steps := p.asRun, p.cfg.MaxSteps
	if t.mode != "" {
		s.Mode = t.mode
	}
	if t.timeout != nil {
		s.Timeout = *t.timeout
	}
	if s.Mode == config.Legacy {
		s.Timeout, s.MaxTimeout = config.DefaultTimeout, nil
	}
	if t.maxSteps > 0 {
		steps = t.maxSteps
	}
	p.settings, p.maxSteps = s, steps
	tools, err := p.registry()
	if err != nil {
		return err
	}
	planTools, err := p.planTools(tools)
	if err != nil {
		return err
	}
	return p.agent.Reconfigure(func(o *engine.Options) {
		o.Settings, o.Tools, o.PlanTools = s, tools, planTools
		o.MaxSteps, p.options.MaxSteps = steps, steps // of its sub-agents too
	})
}

// waiting completes a result with the questions that wait: after a failure of
// the log those that it has, as whoever opens it next will find them.
func (p *performance) waiting(res *session.RunResult) {
	var list remote.QuestionList
	if log := p.log.file(); log != nil && p.agent.Failure() != nil {
		list, _, _ = readQuestions(context.Background(), p.key, log.Path(), false) // of a log that cannot be read either none are known
	} else {
		p.agent.View(func(st *session.State) { list = listQuestions(st) })
	}
	for _, q := range list.Active {
		res.Questions = append(res.Questions, session.OpenQuestion{
			CallID: q.CallID, State: q.State, Queued: q.Queued, Questions: q.Questions, Answer: p.answerCommand(q.CallID),
		})
	}
}

// verdict is how the interval ended as an error, nil if well.
func (p *performance) verdict(ctx context.Context, res *session.RunResult, end session.Reason) error {
	var sig Signal
	if errors.As(context.Cause(ctx), &sig) {
		return &Coded{Exit: sig.Exit(), Code: CodeAborted, Message: sig.Error(), Hint: "go on with: " + p.app.command(p.cfg.Home, "run", "--session", p.ref, "go on")}
	}
	var ours *Coded
	if errors.As(context.Cause(ctx), &ours) {
		return ours
	}
	if end.Kind == session.EndCompleted && ctx.Err() == nil {
		if n := len(res.Questions); n > 0 && p.cfg.FailOnPending {
			return &Coded{Exit: ExitPending, Code: "PENDING", Message: fmt.Sprintf("the run completed with %d unanswered %s", n, plural(n, "question")), Hint: "answer with: " + res.Questions[0].Answer}
		}
		return nil
	}
	return failedRun(ctx, end, p.maxSteps, p.app.command(p.cfg.Home, "run", "--session", p.ref, "go on"))
}

// failedRun turns the ending of a run into a code and words.
func failedRun(ctx context.Context, end session.Reason, maxSteps int, again string) error {
	c := &Coded{Exit: ExitFailed}
	switch {
	case end.Kind == session.EndError && end.Error != nil:
		c.Code, c.Message = end.Error.Code, end.Error.Message
		if c.Message == "" {
			c.Message = "the model gave no reason"
		}
		if end.Error.Status != 0 {
			c.Message += fmt.Sprintf(" (HTTP %d)", end.Error.Status)
		}
		c.Hint = "go on with: " + again
		if do := advice[c.Code]; do != "" && do != goesOn {
			c.Hint = do + "\n" + c.Hint
		}
	case end.Kind == session.EndMaxSteps:
		c.Code, c.Message, c.Hint = "MAX_STEPS", fmt.Sprintf("the run reached its limit of %d %s", maxSteps, plural(maxSteps, "step")), "raise --max-steps, or go on with: "+again
	case end.Kind == session.EndMaxTokens:
		c.Code, c.Message, c.Hint = "MAX_TOKENS", "the model's answer was cut at its token limit", "raise --max-tokens, or ask for less at once"
	case end.Kind == session.EndBlocked:
		c.Code, c.Message = "BLOCKED", "a rule refused the input"
		c.Hint = "go on with: " + again
	case errors.Is(context.Cause(ctx), errDuration):
		c.Code, c.Message, c.Hint = "DURATION", errDuration.Error(), "raise --max-duration, or go on with: "+again
	default:
		c.Code, c.Message = CodeAborted, "the run was cancelled"
		c.Hint = "go on with: " + again
	}
	return c
}

// took is for the summary.
func took(res *session.RunResult) time.Duration {
	return time.Duration(res.DurationMS) * time.Millisecond
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
