package engine

import (
	"context"

	"deepseek/internal/session"
)

// Dispose makes the agent leave, whatever it does: messages are refused from
// now on, the turn in hand ends as aborted, the inbox is kept. It returns when
// the agent is idle, and does nothing to one that has left already.
func (a *Agent) Dispose(ctx context.Context) error {
	a.mu.Lock()
	a.leaving = true
	running := a.status == Running
	a.mu.Unlock()
	if !running {
		return nil
	}
	if err := a.Cancel(ctx, session.Cause{Kind: session.CauseDisposed}, true); err != nil {
		return err
	}
	return a.WhenIdle(ctx)
}
