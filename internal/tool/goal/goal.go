// Package goal holds the tools by which the model reads and changes the
// session's goal. The rules are those of session.Goals, decided under the inbox
// lock; here is what a model may ask for, and when.
package goal

import (
	"context"
	_ "embed" // the texts
	"errors"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed get_goal.md
	getText string
	//go:embed create_goal.md
	createText string
	//go:embed create_goal.json
	createSchema string
	//go:embed update_goal.md
	updateText string
	//go:embed update_goal.json
	updateSchema string
)

const getSchema = `{"type":"object","properties":{},"additionalProperties":false}`

// Env is what the tools work with.
type Env struct {
	// View calls f with the state under the inbox lock; f keeps nothing of it and does not block.
	View func(f func(*session.State))
	// Change makes the goal what decide returns, decided and logged under the
	// inbox lock, and returns once that is on disk. decide's error is returned as
	// it is, and then nothing was written.
	Change    func(ctx context.Context, decide func(*session.State) (*session.Goal, error)) error
	NewID     func() string
	MaxRounds int // of a new goal, and the most that a model may ask for
	// Delegated says that the agent has its task from another: that is no word of a person.
	Delegated bool
}

// New makes get_goal, create_goal and update_goal.
func New(env Env) []tool.Tool {
	return []tool.Tool{
		tool.Define(tool.Definition{
			Name: "get_goal", Text: getText, Schema: getSchema, Traits: tool.Traits{Parallel: true, ReadOnly: true},
		}, env.get),
		tool.Define(tool.Definition{Name: "create_goal", Text: createText, Schema: createSchema}, env.create),
		tool.Define(tool.Definition{Name: "update_goal", Text: updateText, Schema: updateSchema}, env.update),
	}
}

func (env Env) get(context.Context, tool.Call, struct{}) tool.Result {
	var goal *session.Goal
	env.View(func(st *session.State) {
		if g, ok := st.Goals.Goal(); ok {
			goal = &g
		}
	})
	return show(goal)
}

type createArgs struct {
	Objective string `json:"objective"`
	MaxRounds *int   `json:"max_goal_rounds,omitempty"`
}

func (env Env) create(ctx context.Context, _ tool.Call, in createArgs) tool.Result {
	rounds := env.MaxRounds
	if in.MaxRounds != nil {
		rounds = *in.MaxRounds
	}
	if rounds < 1 || rounds > env.MaxRounds {
		return tool.Errorf(tool.CodeInvalidArguments, "max_goal_rounds: %d is out of range; it is 1 to %d", rounds, env.MaxRounds)
	}
	return env.change(ctx, true, func(gs *session.Goals) (session.Goal, error) {
		return gs.Create(env.NewID(), in.Objective, rounds)
	})
}

type updateArgs struct {
	ID            string `json:"goal_id"`
	Revision      int    `json:"revision"`
	Action        string `json:"action"`
	Objective     string `json:"objective,omitempty"`
	BlockedReason string `json:"blocked_reason,omitempty"`
}

func (env Env) update(ctx context.Context, _ tool.Call, in updateArgs) tool.Result {
	needsUser := in.Action != session.GoalFinish && in.Action != session.GoalSetBlock
	return env.change(ctx, needsUser, func(gs *session.Goals) (session.Goal, error) { return gs.Update(session.GoalUpdate(in)) })
}

// change decides and answers with the goal as it is then.
func (env Env) change(ctx context.Context, needsUser bool, decide func(*session.Goals) (session.Goal, error)) tool.Result {
	var next session.Goal
	err := env.Change(ctx, func(st *session.State) (*session.Goal, error) {
		switch {
		case needsUser && env.Delegated:
			return nil, &session.GoalError{Code: session.CodeGoalNeedsUser, Message: "only a message of the user can ask for this, and a sub-agent's task is none. Do the task itself."}
		case needsUser && !st.Goals.Human():
			return nil, &session.GoalError{Code: session.CodeGoalNeedsUser, Message: "only a message of the user in this turn can ask for this. " +
				"Go on with the goal as it is; action complete or blocked is yours to call."}
		}
		var err error
		next, err = decide(&st.Goals)
		return &next, err
	})
	var refused *session.GoalError
	switch {
	case errors.As(err, &refused):
		return tool.Errorf(refused.Code, "%s", refused.Message)
	case err != nil && ctx.Err() != nil:
		return tool.Errorf(tool.CodeAborted, "the run was cancelled; get_goal tells whether the goal was changed")
	case err != nil:
		return tool.Errorf(tool.CodeInternal, "the goal could not be logged: %v", err)
	}
	return show(&next)
}

// shown is the goal as a model reads it.
type shown struct {
	ID        string `json:"id"`
	Revision  int    `json:"revision"`
	Objective string `json:"objective"`
	Phase     string `json:"phase"`
	Rounds    int    `json:"rounds"`
	MaxRounds int    `json:"maxRounds"`
}

func show(g *session.Goal) tool.Result {
	var answer struct {
		Goal *shown `json:"goal"`
	}
	if g != nil {
		answer.Goal = &shown{g.ID, g.Revision, g.Objective, g.Phase, g.Rounds, g.MaxRounds}
	}
	text, err := session.Marshal(answer)
	if err != nil { // strings and numbers: JSON holds them all
		return tool.Errorf(tool.CodeInternal, "the goal: %v", err)
	}
	return tool.Result{Content: string(text)}
}
