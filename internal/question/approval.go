package question

import (
	"fmt"
	"strings"

	"deepseek/internal/session"
)

// ApprovalID is the id of the one question of an approval.
const ApprovalID = "approval"

// Labels of an approval in their order. The first is highlighted: Enter alone
// permits nothing. The last is followed by what it would cover.
const (
	LabelNo      = "no"
	LabelBecause = "no, because…" // takes words
	LabelOnce    = "yes, once"
	LabelSession = "yes, for this session: "
)

// Approval is one thing that needs a person's yes.
type Approval struct {
	Title  string // one line: what would happen
	Reason string // why it needs a yes
	Detail string // the exact command or diff
	Prefix string // what "yes, for this session" would cover, "" = it is not offered
}

// maxPrefix bounds the label that offers a prefix: what is longer, or has more
// than one line, is not read before it is chosen.
const maxPrefix = 200 // bytes

// Question is the approval as a card asks it.
func (a Approval) Question() session.Question {
	q := session.Question{ID: ApprovalID, Question: a.Title, Detail: a.Detail, Options: []session.Option{{Label: LabelNo}, {Label: LabelBecause}, {Label: LabelOnce}}}
	if a.Reason != "" {
		q.Question += "\n" + a.Reason
	}
	if a.offersSession() {
		q.Options = append(q.Options, session.Option{Label: LabelSession + a.Prefix})
	}
	return q
}

func (a Approval) offersSession() bool {
	return strings.TrimSpace(a.Prefix) != "" && len(a.Prefix) <= maxPrefix && !strings.ContainsAny(a.Prefix, "\r\n")
}

// Verdict is what a person said to an approval. The zero value is a no.
type Verdict struct {
	Allowed    bool
	ForSession bool // with Allowed: for the prefix too
	// Because says, in a sentence for the model, why it is a no.
	Because string
}

// Verdict reads how the wait of the approval ended. Only the bare label of a yes
// that was offered is a yes. One with words beside it has a condition that
// nobody would check, so it is a no that carries the words.
func (a Approval) Verdict(o Outcome) Verdict {
	switch {
	case o.Err != nil:
		return Verdict{Because: refusal(o.Err)}
	case o.Pending || len(o.Answers) != 1 || o.Answers[0].ID != ApprovalID || len(o.Answers[0].Selected) != 1:
		return Verdict{Because: "The user did not say yes"}
	}
	label, words := o.Answers[0].Selected[0], strings.TrimSpace(o.Answers[0].Custom)
	yes := label == LabelOnce || a.offersSession() && label == LabelSession+a.Prefix
	switch {
	case yes && words == "":
		return Verdict{Allowed: true, ForSession: label != LabelOnce}
	case yes:
		return Verdict{Because: "The user did not simply say yes, but: " + words}
	case words != "":
		return Verdict{Because: "The user said no, because: " + words}
	}
	return Verdict{Because: "The user said no"}
}

func refusal(e *Error) string {
	switch e.Code {
	case CodeNoProvider:
		return "This needs approval, and nobody could be asked"
	case CodeCancelled:
		return "The user closed the card without an answer, which is a no"
	case CodeAborted:
		return "The run was cancelled before there was an answer, which is a no"
	}
	return fmt.Sprintf("This needs approval, and asking failed (%s)", e.Error())
}
