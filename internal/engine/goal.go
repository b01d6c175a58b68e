package engine

import (
	"context"
	_ "embed" // the text
	"strings"
	"sync"
	"text/template"

	"deepseek/internal/session"
)

// GoalStart is what a run does about the session's goal before anything else.
type GoalStart struct {
	Objective string // of a new goal; "": the goal that there is, taken up
	MaxRounds int    // of a new goal; of one taken up its limit from now on, 0 = as it is
}

//go:embed goal_round.md
var roundText string

var roundTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("round").Parse(strings.TrimSpace(roundText)))
})

// ChangeGoal makes the goal what decide returns, nil to clear it, and returns
// once that is on disk. decide sees the state under the inbox lock, so that what
// it found still holds when the change is logged; it must not block. Its error is
// returned as it is, and then nothing was written. A queued round of the goal as
// it was is discarded with the change. A new goal is armed.
func (a *Agent) ChangeGoal(ctx context.Context, decide func(*session.State) (*session.Goal, error)) error {
	a.mu.Lock()
	goal, err := decide(&a.state)
	switch {
	case err != nil:
	case a.leaving:
		err = ErrLeaving
	default:
		had, _ := a.state.Goals.Goal()
		items := append([]item{{session.TypeGoalChange, session.GoalChange{Goal: goal}}}, a.discardRounds()...)
		if err = a.put(items...); err == nil && goal != nil && goal.ID != had.ID {
			a.armed = goal.ID
		}
	}
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return a.sync(ctx)
}

// discardRounds takes the queued rounds of the goal out of the inbox. The caller holds mu.
func (a *Agent) discardRounds() []item {
	var items []item
	_, discard := a.state.Inbox.Rounds()
	for _, s := range discard {
		items = append(items, item{session.TypeInboxSpliced, s})
	}
	return items
}

// start decides on the goal that a run begins with. The caller holds mu.
func (a *Agent) start(g GoalStart) (session.Goal, bool, error) {
	if g.Objective == "" {
		return a.state.Goals.TakeUp(g.MaxRounds)
	}
	goal, err := a.state.Goals.Create(a.opts.NewID(), g.Objective, g.MaxRounds)
	return goal, true, err
}

// nextRound is the round that is owed when nothing else is: there is an active
// goal, armed in this process, with rounds left. It reads the goal's state and
// never a turn's result. In plan mode a goal rests: what it would do is not
// approved yet. The caller holds mu.
func (a *Agent) nextRound() (session.Source, bool) {
	src, ok := a.state.Goals.NextRound()
	if !ok || src.GoalID != a.armed || a.state.Plan {
		return session.Source{}, false
	}
	return src, true
}

// queueRound queues one round of the goal if nothing else is owed, and tells
// whether it did. Instructions for agents are no work of their own: the round
// takes them along. The caller holds mu.
func (a *Agent) queueRound() bool {
	src, ok := a.nextRound()
	if !ok || a.failure != nil || a.resting || a.leaving || a.state.Inbox.Waiting() {
		return false
	}
	// An error is kept as a.failure.
	return a.put(item{session.TypeInboxSpliced, a.state.Inbox.Insert(session.NextTurn, a.round(src))}) == nil
}

// round is the message of a round. The caller holds mu.
func (a *Agent) round(src session.Source) session.UserMessage {
	goal, _ := a.state.Goals.Goal()
	var text strings.Builder
	// Fields of a struct that the template names, into memory: never fails.
	_ = roundTemplate().Execute(&text, struct {
		session.Goal
		Round int
	}{goal, src.Round})
	return session.NewUserMessage(a.opts.NewID(), text.String(), src)
}

// refuseStale begins a turn that refuses the queued rounds of a goal that is not
// any more as it was when they were queued, or that nobody has armed since: it
// tells whether there were any. They are discarded, and the turn has no step.
func (a *Agent) refuseStale(turn int) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	queued, _ := a.state.Inbox.Rounds()
	if len(queued) == 0 {
		return false, nil
	}
	if src, ok := a.nextRound(); ok && len(queued) == 1 && queued[0].Source == src {
		return false, nil
	}
	return true, a.put(append([]item{{session.TypeTurnStart, session.TurnStart{Turn: turn}}}, a.discardRounds()...)...)
}
