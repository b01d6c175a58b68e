package engine

import (
	"context"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// offered is the tools of the next step: another set while the session is in plan
// mode. That is the log's to say, so that what a step offers, what its calls may
// use and what a resume finds cannot differ. The caller holds mu.
func (a *Agent) offered() *tool.Registry {
	switch {
	case !a.state.Plan:
		return a.opts.Tools
	case a.opts.PlanTools != nil:
		return a.opts.PlanTools
	}
	return new(tool.Registry)
}

// tools is offered for callers that do not hold mu.
func (a *Agent) tools() *tool.Registry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offered()
}

// EndPlan ends plan mode, because a person approved the plan, and returns once
// that is on disk. The next step offers all tools.
func (a *Agent) EndPlan(ctx context.Context) error {
	return a.Record(ctx, session.TypePlanMode, session.PlanMode{Active: false})
}
