package engine

import (
	"context"
	"errors"
	"fmt"

	"deepseek/internal/session"
)

// RunOptions say how an interval is opened and closed.
type RunOptions struct {
	Input *Input // nil: what is queued alone is worked off
	Leave bool   // at its end the owner goes: messages are refused from then on
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
// An error is the log's, or a malformed log; then the result is as far as it is known.
func (a *Agent) Run(ctx context.Context, o RunOptions, started func(messageID string)) (session.RunResult, session.Reason, error) {
	begun := a.opts.Now()
	a.mu.Lock()
	id, err := a.open(o.Input)
	a.mu.Unlock()
	if err != nil {
		return session.RunResult{}, session.Reason{}, err
	}
	if err := a.sync(context.WithoutCancel(ctx)); err != nil {
		return session.RunResult{}, session.Reason{}, fmt.Errorf("begin the run: %w", err)
	}
	if started != nil {
		started(id)
	}
	a.mu.Lock()
	if !a.state.Inbox.Empty() {
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
	defer a.mu.Unlock()
	in := a.interval
	a.interval = nil
	res := in.Result()
	res.SessionID = a.opts.SessionID
	res.DurationMS = a.opts.Now().Sub(begun).Milliseconds()
	if id != "" {
		res.MessageID = &id
	}
	return res, in.End(), a.failure
}

// open begins the interval: closers, settings and the receipt are one batch.
// The driver is not woken yet. The caller holds mu.
func (a *Agent) open(in *Input) (id string, err error) {
	if a.status != Idle || a.interval != nil {
		return "", ErrRunning
	}
	if a.leaving {
		return "", ErrLeaving
	}
	from := a.state.Next
	batch := []item{{session.TypeSettings, a.opts.Settings}}
	if in != nil {
		m := a.message(in.Content, in.Source)
		id = m.ID
		batch = append(batch, item{session.TypeInboxSpliced, a.state.Inbox.Insert(in.Target, m)})
		from++
	}
	if in == nil && a.state.Inbox.Empty() {
		return "", errors.New("there is nothing to do: no task, and the inbox is empty")
	}
	a.interval = session.NewInterval(from)
	if err := a.put(batch...); err != nil {
		a.interval = nil
		return "", fmt.Errorf("begin the run: %w", err)
	}
	return id, nil
}
