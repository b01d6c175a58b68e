package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepseek/internal/session"
)

// RunOptions say how an interval is opened and closed.
type RunOptions struct {
	Input *Input     // nil: what is queued, or the goal, alone is worked off
	Plan  bool       // in plan mode from now on; a session that is in it stays in it
	Goal  *GoalStart // nil: the goal stays as it is, and disarmed if this process has not armed it
	Leave bool       // at its end the owner goes: messages are refused from then on

	Subagent *session.Subagent // of a sub-agent's session: who delegated what; else nil
}

// Input is the message that opens an interval.
type Input struct {
	Target  string // of the lists of the inbox
	Content []session.Block
	Source  session.Source
}

// Task is an input that gets a turn of its own.
func Task(text string) *Input {
	return &Input{
		Target: session.NextTurn, Content: []session.Block{{Type: session.BlockText, Text: text}},
		Source: session.Source{Kind: session.SourceUser},
	}
}

// Run owns one idle-to-idle interval: it takes an idle agent, enqueues the task
// behind what is queued already, and collects from the receipt to the next
// whole-agent idle. started, if not nil, is called once the receipt is on disk
// and before any model request.
//
// When ctx ends the turn in hand is cancelled, with the cause that is a
// *Canceled, the inbox is kept, and the result is that of the interval so far.
// An error is the log's, or a malformed log; then the result tells of what is on disk.
func (a *Agent) Run(ctx context.Context, o RunOptions, started func(messageID string)) (session.RunResult, session.Reason, error) {
	id, err := a.Begin(ctx, o)
	if err != nil {
		return session.RunResult{}, session.Reason{}, err
	}
	if started != nil {
		started(id)
	}
	a.mu.Lock()
	begun := a.begun.at
	a.begun = nil
	if a.status == Idle {
		a.resting = false
		a.queueRound()
	}
	if a.state.Inbox.Waiting() {
		a.wake()
	}
	a.mu.Unlock()

	stop := context.AfterFunc(ctx, func() {
		// The log's failure is the agent's, and Run returns that one.
		_ = a.Cancel(context.WithoutCancel(ctx), cause(ctx), true)
	})
	defer stop()
	for {
		if err := a.WhenIdle(context.WithoutCancel(ctx)); err != nil {
			return session.RunResult{}, session.Reason{}, err
		}
		a.mu.Lock()
		if a.status == Idle && (!o.Leave || a.leave()) {
			break
		}
		a.mu.Unlock()
	}
	in, failure := a.interval, a.failure
	a.interval = nil
	sessionID, took := a.opts.SessionID, a.opts.Now().Sub(begun)
	a.mu.Unlock()
	if failure != nil {
		in = a.durable(in.From())
	}
	res := in.Result()
	res.SessionID = sessionID
	res.DurationMS = took.Milliseconds()
	if id != "" {
		res.MessageID = &id
	}
	return res, in.End(), failure
}

// durable is the interval from a seq on as the disk has it: what a failed log did
// not get there has not happened. Where it cannot be read either, nothing is known.
func (a *Agent) durable(from int64) *session.Interval {
	in := session.NewInterval(from)
	c, err := a.log.Follow(from)
	if err != nil {
		return in
	}
	defer func() { _ = c.Close() }() // it was only read
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing more is waited for
	for {
		lines, err := c.Next(ctx)
		if err != nil {
			return in
		}
		for _, l := range lines {
			e, err := session.ParseEvent(l.Raw)
			if err == nil {
				err = in.Apply(e)
			}
			if err != nil {
				return in
			}
		}
	}
}

// begun is an interval that was opened and whose Run has not come yet.
type begun struct {
	id string
	at time.Time
}

// Begin opens the interval of the next Run ahead of it, for a caller who has to
// say that the input is accepted before anything comes of it. The receipt is on
// disk when it returns. Run, called with the same options, goes on from there.
func (a *Agent) Begin(ctx context.Context, o RunOptions) (messageID string, err error) {
	at := a.opts.Now()
	a.mu.Lock()
	if b := a.begun; b != nil {
		a.mu.Unlock()
		return b.id, nil
	}
	id, err := a.open(o)
	if err == nil {
		a.begun = &begun{id, at}
	}
	a.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := a.sync(context.WithoutCancel(ctx)); err != nil {
		return "", fmt.Errorf("begin the run: %w", err)
	}
	return id, nil
}

// open begins the interval with one batch: closers, settings, the receipt, and
// what the run is to know besides. A crash may keep a first part of the batch, so
// plan mode stands before the receipt: a task is not to be found queued without
// it, and done with all tools. The driver is not woken yet. A refusal is a
// *session.GoalError where it is the goal's. The caller holds mu.
func (a *Agent) open(o RunOptions) (id string, err error) {
	if a.status != Idle || a.interval != nil {
		return "", ErrRunning
	}
	if a.leaving {
		return "", ErrLeaving
	}
	batch := []item{{session.TypeSettings, a.settings()}}
	if o.Plan && !a.state.Plan {
		batch = append(batch, item{session.TypePlanMode, session.PlanMode{Active: true}})
	}
	var rest []item
	if o.Subagent != nil {
		rest = append(rest, item{session.TypeSubagent, o.Subagent})
	}
	armed := a.armed
	if o.Goal != nil {
		goal, changed, err := a.start(*o.Goal)
		if err != nil {
			return "", err
		}
		armed = goal.ID
		if changed {
			rest = append(rest, item{session.TypeGoalChange, session.GoalChange{Goal: &goal}})
			rest = append(rest, a.discardRounds()...)
		}
	}
	if o.Input == nil && !a.state.Inbox.Waiting() && (o.Goal == nil || o.Plan || a.state.Plan) {
		return "", errors.New("there is nothing to do: no task, no goal, and the inbox is empty")
	}
	from := a.state.Next
	if o.Input != nil {
		m := a.message(o.Input.Content, o.Input.Source)
		id = m.ID
		from += int64(len(batch))
		batch = append(batch, item{session.TypeInboxSpliced, a.state.Inbox.Insert(o.Input.Target, m)})
	}
	a.interval, a.armed = session.NewInterval(from), armed
	if err := a.put(append(batch, rest...)...); err != nil {
		a.interval = nil
		return "", fmt.Errorf("begin the run: %w", err)
	}
	return id, nil
}
