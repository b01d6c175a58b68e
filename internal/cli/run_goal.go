package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"deepseek/internal/engine"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/goal"
	"deepseek/internal/tool/plan"
	"deepseek/internal/view"
)

// beginning is what a run does before its first task: the flags --plan, --goal
// and --goal-resume.
type beginning struct {
	plan       bool
	goal       string
	goalGiven  bool
	goalResume bool
}

func (b *beginning) flags(f *pflag.FlagSet) {
	f.BoolVar(&b.plan, "plan", false, "plan only: read and ask, until you have approved the plan")
	f.StringVar(&b.goal, "goal", "", "work in rounds until the `objective` is reached")
	f.BoolVar(&b.goalResume, "goal-resume", false, "go on with the goal of --session or --continue")
}

// read checks what can be said without a session. f was parsed.
func (b *beginning) read(f *pflag.FlagSet, old bool) error {
	b.goalGiven = f.Changed("goal")
	switch {
	case b.goalGiven && strings.TrimSpace(b.goal) == "":
		return usagef("the goal is empty\nsay what is to be reached: --goal OBJECTIVE")
	case b.goalGiven && b.goalResume:
		return usagef("--goal sets a new goal and --goal-resume goes on with the old one\ngive one of them")
	case b.goalResume && !old:
		return usagef("--goal-resume goes on with the goal of a session\nname it: deepseek run --session S --goal-resume")
	case b.plan && (b.goalGiven || b.goalResume):
		return usagef("--plan waits for your word and a goal works without it\nhave the plan approved first, then set the goal")
	}
	return nil
}

// withGoal tells whether a goal is work enough for a run without a task.
func (b beginning) withGoal() bool { return b.goalGiven || b.goalResume }

// start is the goal's part for the engine. It is refused, on what the session's
// log says, before anything is written.
func (b beginning) start(o *owner) (*engine.GoalStart, error) {
	if !b.withGoal() {
		return nil, nil
	}
	if o.state.Plan {
		return nil, usagef("session %s is in plan mode, where a goal rests\nhave its plan approved first: %s", o.ref, o.app.command(o.cfg.Home, "run", "--session", o.ref, "TASK"))
	}
	s := &engine.GoalStart{Objective: b.goal, MaxRounds: o.cfg.MaxGoalRounds}
	if b.goalGiven {
		_, err := o.state.Goals.Create("new", b.goal, s.MaxRounds)
		return s, o.goalUsage(err)
	}
	if !o.cfg.Explicit("max_goal_rounds") {
		s.MaxRounds = 0
	}
	_, _, err := o.state.Goals.TakeUp(s.MaxRounds)
	return s, o.goalUsage(err)
}

// goalUsage is a refusal of the goal's rules as a usage error that says what to do.
func (o *owner) goalUsage(err error) error {
	var refused *session.GoalError
	if !errors.As(err, &refused) {
		return err
	}
	g, ok := o.state.Goals.Goal()
	command := func(words ...string) string { return o.app.command(o.cfg.Home, words...) }
	switch {
	case refused.Code == session.CodeGoalInvalid: // its words are at fault, whatever the session
		return usagef("%s\nmake it shorter, and put the rest into a file that it names", refused.Message)
	case refused.Code == session.CodeGoalExists:
		return usagef("%s\ngo on with it: %s\nor drop it: %s", refused.Message,
			command("run", "--session", o.ref, "--goal-resume"), command("goal", o.ref, "clear"))
	case !ok, g.Phase == session.GoalComplete:
		return usagef("%s\nset a new one: %s", refused.Message, command("run", "--session", o.ref, "--goal", "OBJECTIVE"))
	case refused.Code == session.CodeGoalPhase && g.Rounds >= g.MaxRounds && g.Rounds < session.MaxGoalRounds:
		return usagef("%s\nallow more with --max-goal-rounds, up to %d", refused.Message, session.MaxGoalRounds)
	case refused.Code == session.CodeGoalPhase && g.Rounds >= session.MaxGoalRounds:
		return usagef("%s\ndrop it, then set a new one: %s", refused.Message, command("goal", o.ref, "clear"))
	}
	return usagef("%s\nsee how it stands: %s", refused.Message, command("goal", o.ref))
}

// goalNow is the goal as it stands, zero where there is none.
func (o *owner) goalNow() (g session.Goal) {
	o.agent.View(func(st *session.State) { g, _ = st.Goals.Goal() })
	return g
}

// goalNote says on stderr how the goal stands at the end of an interval that changed it.
func (p *performance) goalNote(before session.Goal) {
	g := p.goalNow()
	if g == before || g.ID == "" {
		return
	}
	text := fmt.Sprintf("goal %s after %d %s", g.Phase, g.Rounds, plural(g.Rounds, "round"))
	again := p.app.command(p.cfg.Home, "run", "--session", p.ref, "--goal-resume")
	switch {
	case g.Phase == session.GoalBlocked:
		text += ": " + view.OneLine(g.BlockedReason)
	case g.Phase == session.GoalPaused:
	case g.Phase == session.GoalActive && g.Rounds >= g.MaxRounds && g.Rounds < session.MaxGoalRounds:
		text = "goal not reached: " + used(g.Rounds)
		again += fmt.Sprintf(" --max-goal-rounds %d", session.MaxGoalRounds)
	case g.Phase == session.GoalActive && g.Rounds >= g.MaxRounds:
		text = "goal not reached: " + used(g.Rounds) + "; it stays active"
		again = ""
	case g.Phase == session.GoalActive:
	default:
		again = ""
	}
	if again == "" {
		p.show.screen.Note(text)
		return
	}
	p.show.screen.Hint(text+"; go on with", again)
}

// goalTools are the tools by which the model reads and changes the goal.
func (o *owner) goalTools() []tool.Tool {
	return goal.New(goal.Env{
		View: func(f func(*session.State)) { o.agent.View(f) },
		Change: func(ctx context.Context, decide func(*session.State) (*session.Goal, error)) error {
			return o.agent.ChangeGoal(ctx, decide)
		},
		NewID: newMessageID, MaxRounds: o.cfg.MaxGoalRounds, Delegated: o.delegation != nil,
	})
}

// planTools is what plan mode offers of the tools.
func (o *owner) planTools(all *tool.Registry) (*tool.Registry, error) {
	return plan.Offer(all, plan.Env{
		Ask: o.questions.Ask,
		Active: func() (active bool) {
			o.agent.View(func(st *session.State) { active = st.Plan })
			return active
		},
		Leave:  func(ctx context.Context) error { return o.agent.EndPlan(ctx) },
		Redact: o.key.String,
	})
}

// used says that no round is left of so many.
func used(rounds int) string {
	if rounds == 1 {
		return "its only round is used"
	}
	return fmt.Sprintf("all %d rounds are used", rounds)
}
