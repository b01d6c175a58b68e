package view

import (
	"fmt"

	"deepseek/internal/session"
)

// goalWords says on one line how a goal stands.
func goalWords(g *session.Goal) string {
	if g == nil {
		return "goal cleared"
	}
	text := fmt.Sprintf("goal %s (revision %d): %s", OneLine(g.Phase), g.Revision, OneLine(Excerpt(g.Objective, 4, 400)))
	if g.BlockedReason != "" {
		text += "; blocked: " + OneLine(Excerpt(g.BlockedReason, 4, 400))
	}
	return text
}

// InPlanMode is what a person is told of a session that is in plan mode.
const InPlanMode = "plan mode: nothing is changed until a plan is approved"

func planWords(p session.PlanMode) string {
	if p.Active {
		return InPlanMode
	}
	return "plan mode is over: the plan was approved"
}
