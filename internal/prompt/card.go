package prompt

import (
	"context"
	"errors"
	"time"

	"deepseek/internal/session"
)

// Kinds of cards.
const (
	KindQuestion = "question"
	KindApproval = "approval"
	KindPlan     = "plan-review"
)

// Codes that a card rejects its wait with.
const (
	CodeTimedOut  = "ASK_TIMED_OUT"
	CodeCancelled = "ASK_CANCELLED"
)

// CodeNoClaim is the code of a refusal that says that the claim got lost.
const CodeNoClaim = "NO_CLAIM"

// Card is what is to be asked.
type Card struct {
	SessionID string
	CallID    string
	Kind      string // KindQuestion, KindApproval or KindPlan; empty is a question

	// Timed says that the call is one of timed mode: it stays answerable when its
	// wait has ended, so a draft is kept. Blocking says that the wait has no end
	// of its own: Esc twice closes it. A timed call may be blocking.
	Timed    bool
	Blocking bool

	// Continued says that the wait is over already and the question still to be
	// answered: nothing is attached, and Enter sends a late answer.
	Continued bool

	Questions     []session.Question
	AnswerCommand string // ready to paste into a shell

	// EscAnswer is the label that Esc twice takes on an approval or a plan review.
	// Without it the card is rejected with CodeCancelled.
	EscAnswer string
	// WordsFor is the label of an approval or a plan review that takes words.
	// Without it, every label that ends with an ellipsis does.
	WordsFor string
}

// Desk is where a card's answer goes, one desk a card. Every call returns soon
// after its context ends. The calls of one card never overlap.
//
// An error that is no *Refused and not the context's means that the connection
// was lost: whether the call took effect is then unknown.
type Desk interface {
	// Attach claims the wait. It is called before anything is drawn, and again if
	// the claim got lost while the question was still open. A negative remainder,
	// or timed false, means no countdown. ErrGone: there is no such wait any more.
	Attach(ctx context.Context) (remaining time.Duration, timed bool, err error)
	// Respond is the foreground outcome. accepted is true only when the settlement
	// is on disk, and false when another settlement won.
	Respond(ctx context.Context, answers []session.Answer) (accepted bool, err error)
	// Reject ends the wait with a code; accepted as in Respond.
	Reject(ctx context.Context, code string) (accepted bool, err error)
	// Late answers a question that has become continued; accepted as in Respond.
	Late(ctx context.Context, answers []session.Answer) (accepted bool, err error)
	// State is the question's state now. A late card asks for it over and over.
	State(ctx context.Context) (string, error)
	// Detach lets the claim go. Without a claim it does nothing.
	Detach(ctx context.Context) error
	// Ended yields how the wait ended, at most once, and is closed after. Closed
	// without a value means that the connection was lost.
	Ended() <-chan Ended
}

// States of a question.
const (
	StateOpen      = "open"
	StateContinued = "continued"
	StateSettled   = "settled"
	StateRemoved   = "removed"
)

// Ended says how a wait ended.
type Ended struct {
	Outcome string           // one of the Ended words
	Mine    bool             // by this client
	By      string           // who it was, in words, if known
	Answers []session.Answer // of EndedAnswered, if known
}

// Words for the end of a wait.
const (
	EndedAnswered  = "answered"
	EndedPending   = "pending"
	EndedAborted   = "aborted"
	EndedCancelled = "cancelled"
)

// ErrGone is Attach's error for a wait that has ended or never was.
var ErrGone = errors.New("the question is no longer waiting")

// Refused is the desk's answer to a request it understood and would not take.
// The card shows the message and stays.
type Refused struct {
	Code    string
	Message string
}

func (r *Refused) Error() string {
	if r.Code == "" {
		return r.Message
	}
	return r.Code + ": " + r.Message
}

// Outcome says what became of a card.
type Outcome int

// Outcomes of a card.
const (
	// Gone: the wait was over, or somebody else ended it. Result.By may say who.
	Gone Outcome = iota
	// Answered: the desk accepted the answers as the foreground outcome.
	Answered
	// LateAnswered: the desk accepted the answers as a late answer.
	LateAnswered
	// Expired: the countdown, here or at another client, ended the wait.
	Expired
	// HandedOver: the claim was let go, the question waits for somebody else.
	HandedOver
	// Closed: rejected with CodeCancelled.
	Closed
	// Interrupted: Ctrl+C. The wait is untouched, only its claim is let go.
	Interrupted
	// Unknown: the connection was lost and the state could not be read again, or
	// does not tell whether this answer arrived.
	Unknown
)

var outcomeNames = [...]string{"gone", "answered", "late-answered", "expired", "handed-over", "closed", "interrupted", "unknown"}

func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return "invalid"
	}
	return outcomeNames[o]
}

// Result is what became of a card, and the answers where they were accepted.
type Result struct {
	Outcome Outcome
	Answers []session.Answer
	By      string // who ended the wait, if it was somebody else and it is known

	// State is StateSettled or StateRemoved where the card has read that its question takes no
	// answer any more. It counts beside an error, too.
	State string
}

// isQuestion: approvals and plan reviews have no free text of their own, no
// draft, and cannot be handed over.
func (c Card) isQuestion() bool { return c.Kind == "" || c.Kind == KindQuestion }

// keepsDraft: only what stays answerable is worth a draft.
func (c Card) keepsDraft() bool { return c.isQuestion() && c.Timed }
