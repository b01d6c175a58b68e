package engine

import (
	"context"
	"errors"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// turn runs turn n and returns the kind of its end, "" where what was owed had
// been taken back before it began. An error means that the log failed: then
// nothing more may be done, not even ending the turn.
func (a *Agent) turn(ctx context.Context, n int) (string, error) {
	reason, err := a.stepsOf(ctx, n)
	if err != nil || reason.Kind == "" {
		return "", err
	}
	return reason.Kind, a.append(item{session.TypeTurnEnd, session.TurnEnd{Turn: n, Reason: reason}})
}

// stepsOf runs the steps of turn n, from turn/start up to but without turn/end.
// The zero Reason says that there was no turn.
func (a *Agent) stepsOf(ctx context.Context, n int) (session.Reason, error) {
	for step := 1; ; step++ {
		if ctx.Err() != nil && step > 1 {
			return session.Reason{Kind: session.EndAborted, Cause: ref(cause(ctx))}, nil
		}
		if step == 1 {
			if refused, err := a.refuseStale(n); err != nil || refused {
				return session.Reason{Kind: session.EndBlocked}, err
			}
		}
		if a.steps >= a.opts.MaxSteps {
			if step == 1 {
				if err := a.append(item{session.TypeTurnStart, session.TurnStart{Turn: n}}); err != nil {
					return session.Reason{}, err
				}
			}
			return session.Reason{Kind: session.EndMaxSteps}, nil
		}
		if entered, err := a.enter(n, step); err != nil || !entered {
			return session.Reason{}, err
		}
		a.steps++
		end, err := a.step(ctx, n, step)
		if err != nil {
			return session.Reason{}, err
		}
		if err := a.append(item{session.TypeStepEnd, session.StepMark{Turn: n, Step: step}}); err != nil {
			return session.Reason{}, err
		}
		if end == nil || end.Kind == session.EndCompleted && a.steered() {
			continue
		}
		return *end, nil
	}
}

// steered tells whether input waits for the next step.
func (a *Agent) steered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Inbox.Len(session.NextStep) > 0
}

// enter claims the input of a step and admits it, in one batch. A turn without
// any input is not begun.
func (a *Agent) enter(turn, step int) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if step == 1 && !a.state.Inbox.Waiting() {
		return false, nil
	}
	var batch []item
	if step == 1 {
		if err := a.announce(); err != nil {
			return false, err
		}
		batch = append(batch, item{session.TypeTurnStart, session.TurnStart{Turn: turn}})
	}
	splices, msgs := a.state.Inbox.Claim(step == 1)
	for _, s := range splices {
		batch = append(batch, item{session.TypeInboxSpliced, s})
	}
	batch = append(batch, item{session.TypeStepStart, session.StepMark{Turn: turn, Step: step}})
	for _, m := range msgs {
		batch = append(batch, item{session.TypeUserMessage, m})
	}
	return true, a.put(batch...)
}

// step makes one model request and runs the calls it makes. Nil asks for
// another step; an error means that the log failed.
func (a *Agent) step(ctx context.Context, turn, step int) (*session.Reason, error) {
	resp, err := a.request(ctx, turn, step)
	if fail := a.Failure(); fail != nil {
		return nil, fail
	}
	var refused *model.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if err := a.commitCut(turn, step, resp); err != nil {
			return nil, err
		}
		return &session.Reason{Kind: session.EndAborted, Cause: ref(cause(ctx))}, nil
	case errors.As(err, &refused):
		return &session.Reason{Kind: session.EndError, Error: &session.ErrorInfo{
			Code: refused.Code, Message: refused.Message, Status: refused.Status,
		}}, nil
	default:
		return &session.Reason{Kind: session.EndError, Error: &session.ErrorInfo{Code: codeInternal, Message: err.Error()}}, nil
	}

	calls, err := a.commit(turn, step, resp)
	if err != nil {
		return nil, err
	}
	if len(calls) > 0 {
		if err := a.runCalls(ctx, turn, step, calls); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return &session.Reason{Kind: session.EndAborted, Cause: ref(cause(ctx))}, nil
		}
		return nil, nil
	}
	if resp.Finish == model.FinishLength {
		return &session.Reason{Kind: session.EndMaxTokens}, nil
	}
	return &session.Reason{Kind: session.EndCompleted}, nil
}

const codeInternal = "INTERNAL"

func ref[T any](v T) *T { return &v }
