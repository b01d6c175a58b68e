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

func planWords(p session.PlanMode) string {
	if p.Active {
		return "plan mode: nothing is changed until a plan is approved"
	}
	return "plan mode is over: the plan was approved"
}
