package question

import (
	"time"

	"deepseek/internal/session"
)

// Kind says what a wait is for. Tests may use kinds of their own.
type Kind string

// The kinds of waits.
const (
	KindQuestion   Kind = "question" // of timed mode: tracked, and answerable when the wait is over
	KindLegacy     Kind = "legacy"
	KindApproval   Kind = "approval"
	KindPlanReview Kind = "plan-review"
)

// Permits tells whether an answer to the kind is a permission. Such a wait
// never ends by time, and its one selected option may have words beside it.
func (k Kind) Permits() bool { return k == KindApproval || k == KindPlanReview }

// Intent says what an answer decides beyond the words of the question.
type Intent struct {
	Kind    string `json:"kind"`    // "plan-review"
	Approve string `json:"approve"` // the label that approves
}

// Caller is who asks.
type Caller struct {
	Live      bool // it is the agent that runs now, not one that was replaced or disposed
	Delegated bool // it is owned by another agent
}

// Request asks a batch of questions.
type Request struct {
	CallID    string
	Kind      Kind
	Questions []session.Question // read only from here on
	Intent    *Intent            // of plan reviews
	Caller    Caller
	// Opened is called when all watchers have been told of the wait. May be nil.
	Opened func()
	// Commit logs how the wait ended and returns once that is on disk. It is
	// called once for a wait that began, before anybody is told, and never with a
	// lock held. Nil for kinds that are logged elsewhere.
	Commit func(Outcome) error
}

// Outcome is what a call that asks comes to: answers, pending, or an error.
type Outcome struct {
	Answers     []session.Answer // in the order of the questions; nil where there are none
	Pending     bool
	DuplicateOf string // with Pending: the call that asked the same before, nothing was drawn
	Err         *Error
}

// Words for the end of a wait.
const (
	Answered  = "answered"
	Pending   = "pending"
	Aborted   = "aborted"
	Cancelled = "cancelled"
)

func (o Outcome) word() string {
	switch {
	case o.Err == nil && o.Pending:
		return Pending
	case o.Err == nil:
		return Answered
	case o.Err.Code == CodeCancelled:
		return Cancelled
	}
	return Aborted
}

// Card is what a client draws.
type Card struct {
	SessionID string
	CallID    string
	Kind      Kind
	Timed     bool               // the wait ends by itself; else only an outcome ends it
	Questions []session.Question // read only
	Intent    *Intent
	Remaining time.Duration // to the deadline when the card was made; negative: there is none
}

// Types of events.
const (
	Opened = "opened"
	Closed = "ended"
)

// Event tells of a wait that began or ended.
type Event struct {
	Type    string
	Card    Card
	Outcome string           // of Closed: one of the words for the end of a wait
	Answers []session.Answer // of Closed, where it was answered
}

// Ended tells the holder of a claim how its wait ended.
type Ended struct {
	Outcome string
	Mine    bool // this claim's outcome was the one
	Answers []session.Answer
}
