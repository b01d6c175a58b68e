package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Goal is what a session works towards, round by round, until it rests.
type Goal struct {
	ID            string `json:"id"`
	Revision      int    `json:"revision"` // 1, and one more with each change
	Objective     string `json:"objective"`
	Phase         string `json:"phase"`
	Rounds        int    `json:"rounds"` // admitted so far
	MaxRounds     int    `json:"maxRounds"`
	BlockedReason string `json:"blockedReason,omitempty"` // of blocked
}

// Phases of a goal. Only an active one gets rounds.
const (
	GoalActive   = "active"
	GoalPaused   = "paused"
	GoalBlocked  = "blocked"
	GoalComplete = "complete"
)

// GoalChange is the whole goal as it is from now on, nil when it was cleared.
type GoalChange struct {
	Goal *Goal `json:"goal"`
}

// Limits of a goal.
const (
	MaxGoalRounds    = 256
	MaxGoalObjective = 4000 // characters
	MaxGoalReason    = 2000 // characters
)

// What an update does.
const (
	GoalEdit     = "edit"
	GoalPause    = "pause"
	GoalResume   = "resume"
	GoalFinish   = "complete"
	GoalSetBlock = "blocked"
)

// Codes of refused changes.
const (
	CodeGoalExists    = "GOAL_EXISTS"     // there is an unfinished one
	CodeGoalConflict  = "GOAL_CONFLICT"   // it is another one, or has changed since
	CodeGoalPhase     = "GOAL_PHASE"      // its phase does not allow this
	CodeGoalNeedsUser = "GOAL_NEEDS_USER" // no message of a person asked for it in this turn
	CodeGoalInvalid   = "INVALID_ARGUMENTS"
)

// GoalError refuses a change of the goal.
type GoalError struct{ Code, Message string }

func (e *GoalError) Error() string { return e.Code + ": " + e.Message }

func goalErrorf(code, format string, args ...any) error {
	return &GoalError{code, fmt.Sprintf(format, args...)}
}

// Goals folds the session's goal, and whether a person has spoken in the turn.
// Its decisions are pure: they return the goal as it would be and change nothing.
type Goals struct {
	goal  *Goal // nil: there is none. Replaced, never written to
	human bool  // the turn in hand has admitted a person's own message
}

// Apply consumes the next event.
func (g *Goals) Apply(e Event) error {
	switch e.Type {
	case TypeTurnStart:
		g.human = false
	case TypeGoalChange:
		var c GoalChange
		if err := decode(e, &c); err != nil {
			return err
		}
		g.goal = c.Goal
	case TypeUserMessage:
		if e.SurfaceOp != nil || g.human && !bytes.Contains(e.Data, []byte(`"`+SourceGoal+`"`)) {
			return nil
		}
		var m struct {
			Source Source `json:"source"`
		}
		if err := decode(e, &m); err != nil {
			return err
		}
		switch m.Source.Kind {
		case SourceUser:
			g.human = true
		case SourceGoal:
			g.admit(m.Source)
		}
	}
	return nil
}

// admit counts a round: a message that is queued, or that was refused, is none.
func (g *Goals) admit(s Source) {
	if g.goal == nil || g.goal.ID != s.GoalID || s.Round <= g.goal.Rounds {
		return
	}
	counted := *g.goal
	counted.Rounds = s.Round
	g.goal = &counted
}

// Goal is the goal as it stands; false where there is none.
func (g *Goals) Goal() (Goal, bool) {
	if g.goal == nil {
		return Goal{}, false
	}
	return *g.goal, true
}

// Human tells whether a person's own message was admitted in the turn in hand.
// An answer to a question and a round of the goal are none.
func (g *Goals) Human() bool { return g.human }

// NextRound is the source of the round that comes next; false where the goal rests.
func (g *Goals) NextRound() (Source, bool) {
	if g.goal == nil || g.goal.Phase != GoalActive || g.goal.Rounds >= g.goal.MaxRounds {
		return Source{}, false
	}
	return Source{Kind: SourceGoal, GoalID: g.goal.ID, Revision: g.goal.Revision, Round: g.goal.Rounds + 1}, true
}

// Create decides on a new goal with at most maxRounds rounds.
func (g *Goals) Create(id, objective string, maxRounds int) (Goal, error) {
	if g.goal != nil && g.goal.Phase != GoalComplete {
		return Goal{}, goalErrorf(CodeGoalExists, "the session has a goal that is not done, %s (%s, revision %d): %s",
			g.goal.ID, g.goal.Phase, g.goal.Revision, short(g.goal.Objective))
	}
	if maxRounds < 1 || maxRounds > MaxGoalRounds {
		return Goal{}, goalErrorf(CodeGoalInvalid, "max_goal_rounds: %d is out of range; it is 1 to %d", maxRounds, MaxGoalRounds)
	}
	objective, err := bounded("objective", objective, MaxGoalObjective)
	if err != nil {
		return Goal{}, err
	}
	return Goal{ID: id, Revision: 1, Objective: objective, Phase: GoalActive, MaxRounds: maxRounds}, nil
}

// GoalUpdate asks for a change of the goal as somebody has seen it.
type GoalUpdate struct {
	ID            string
	Revision      int
	Action        string
	Objective     string // of edit
	BlockedReason string // of blocked
}

// Update decides on a change. It is refused when the goal is not the one, or not
// any more the one, that the update was made for.
func (g *Goals) Update(u GoalUpdate) (Goal, error) {
	if err := u.check(); err != nil {
		return Goal{}, err
	}
	if g.goal == nil {
		return Goal{}, goalErrorf(CodeGoalConflict, "goal_id: the session has no goal")
	}
	next := *g.goal
	switch {
	case u.ID != next.ID:
		return Goal{}, goalErrorf(CodeGoalConflict, "goal_id: %q is not the session's goal; that is %s, revision %d", u.ID, next.ID, next.Revision)
	case u.Revision != next.Revision:
		return Goal{}, goalErrorf(CodeGoalConflict, "revision: %d is not the present one, %d: the goal has changed. It is %s: %s",
			u.Revision, next.Revision, next.Phase, short(next.Objective))
	}
	var from []string
	switch u.Action {
	case GoalEdit:
		from = []string{GoalActive, GoalPaused, GoalBlocked}
		objective, err := bounded("objective", u.Objective, MaxGoalObjective)
		if err != nil {
			return Goal{}, err
		}
		next.Objective = objective
	case GoalPause:
		from, next.Phase = []string{GoalActive}, GoalPaused
	case GoalResume:
		from, next.Phase, next.BlockedReason = []string{GoalPaused, GoalBlocked}, GoalActive, ""
	case GoalFinish:
		from, next.Phase, next.BlockedReason = []string{GoalActive, GoalPaused, GoalBlocked}, GoalComplete, ""
	case GoalSetBlock:
		reason, err := bounded("blocked_reason", u.BlockedReason, MaxGoalReason)
		if err != nil {
			return Goal{}, err
		}
		from, next.Phase, next.BlockedReason = []string{GoalActive}, GoalBlocked, reason
	}
	if !slices.Contains(from, g.goal.Phase) {
		return Goal{}, goalErrorf(CodeGoalPhase, "action: %s does not fit a goal that is %s; it fits one that is %s", u.Action, g.goal.Phase, strings.Join(from, " or "))
	}
	next.Revision++
	return next, nil
}

// check is what can be said of an update without the goal.
func (u GoalUpdate) check() error {
	switch u.Action {
	case GoalEdit, GoalPause, GoalResume, GoalFinish, GoalSetBlock:
	default:
		return goalErrorf(CodeGoalInvalid, "action: %q is none of %s, %s, %s, %s, %s", u.Action, GoalEdit, GoalPause, GoalResume, GoalFinish, GoalSetBlock)
	}
	if u.Objective != "" && u.Action != GoalEdit {
		return goalErrorf(CodeGoalInvalid, "objective: belongs to action %s, not to %s", GoalEdit, u.Action)
	}
	if u.BlockedReason != "" && u.Action != GoalSetBlock {
		return goalErrorf(CodeGoalInvalid, "blocked_reason: belongs to action %s, not to %s", GoalSetBlock, u.Action)
	}
	return nil
}

// TakeUp decides how a person goes on with the goal: one that is paused or
// blocked becomes active again. maxRounds, where it is not 0, is the limit from
// now on. changed says whether the goal differs from the one that stands.
func (g *Goals) TakeUp(maxRounds int) (next Goal, changed bool, err error) {
	if g.goal == nil {
		return Goal{}, false, goalErrorf(CodeGoalConflict, "the session has no goal")
	}
	next = *g.goal
	if maxRounds != 0 {
		next.MaxRounds = min(maxRounds, MaxGoalRounds)
	}
	switch {
	case next.Phase == GoalComplete:
		return Goal{}, false, goalErrorf(CodeGoalPhase, "the goal is complete: %s", short(next.Objective))
	case next.Rounds >= next.MaxRounds:
		return Goal{}, false, goalErrorf(CodeGoalPhase, "the goal has used %d of %d rounds: %s", next.Rounds, next.MaxRounds, short(next.Objective))
	}
	next.Phase, next.BlockedReason = GoalActive, ""
	if changed = next != *g.goal; changed {
		next.Revision++
	}
	return next, changed, nil
}

// Rounds are the queued rounds of a goal, and the splices that take them all out.
func (in *Inbox) Rounds() (queued []UserMessage, discard []InboxSpliced) {
	for i, m := range slices.Backward(in.nextTurn) {
		if m.Source.Kind == SourceGoal {
			queued = append(queued, m)
			discard = append(discard, InboxSpliced{Target: NextTurn, Start: i, RemovedCount: 1, Inserted: []UserMessage{}, Outcome: OutcomeCanceled})
		}
	}
	return queued, discard
}

// Waiting tells whether anything is queued but instructions for agents.
func (in *Inbox) Waiting() bool {
	work := func(m UserMessage) bool { return m.Source.Kind != SourceAgentInstructions }
	return slices.ContainsFunc(in.nextStep, work) || slices.ContainsFunc(in.nextTurn, work)
}

// bounded is the text without white space around it.
func bounded(field, text string, limit int) (string, error) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" {
		return "", goalErrorf(CodeGoalInvalid, "%s: is blank", field)
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return "", goalErrorf(CodeGoalInvalid, "%s: has %d characters, the limit is %d", field, n, limit)
	}
	return text, nil
}

// short is the beginning of a text, on one line.
func short(text string) string {
	const enough = 100
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > enough {
		return string(r[:enough-1]) + "…"
	}
	return string(r)
}
