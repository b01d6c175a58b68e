package question

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepseek/internal/session"
)

// MaxWait is the longest bounded wait in seconds.
const MaxWait = 2147483

const notAnswered = "It is neither answered nor skipped, and nothing is permitted by it"

// begin is the first two checks, those that come before the timeout's.
func begin(ctx context.Context, r Request) *Error {
	if ctx.Err() != nil {
		return aborted(r)
	}
	if len(r.Questions) == 0 {
		return errorf(CodeEmptyQuestions, "questions: there is none; ask at least 1")
	}
	return nil
}

// aborted says what becomes of the question: the log tracks it, or it has gone.
func aborted(r Request) *Error {
	if r.tracked() {
		return errorf(CodeAborted, "the run was cancelled before this question had an answer. %s. "+
			"It stays answerable under callId %s: an answer arrives later as a user message that names this callId.", notAnswered, r.CallID)
	}
	return errorf(CodeAborted, "the run was cancelled before there was an answer. %s.", notAnswered)
}

// tracked tells whether the log keeps the question of a call that ends without an
// answer, as session.Questions does: none of a sub-agent, and none that would
// have been refused.
func (r Request) tracked() bool {
	return r.Kind == KindQuestion && !r.Caller.Delegated && session.CheckQuestions(r.Questions) == nil
}

// check is all checks but that for a wait of the same call. Their order is part
// of the contract: the first that fails is the one that the model reads.
func check(ctx context.Context, r Request, bounded bool, wait time.Duration, rooted bool) *Error {
	if e := begin(ctx, r); e != nil {
		return e
	}
	if bounded && (wait <= 0 || wait > MaxWait*time.Second) {
		return errorf(CodeBadTimeout, "timeout: %v is out of range; it is 1 to %d seconds", wait, MaxWait)
	}
	if err := session.CheckQuestions(r.Questions); err != nil {
		return errorf(CodeBadQuestions, "%v", err)
	}
	if !r.Caller.Live || !rooted {
		return errorf(CodeCallerNotLive, "this agent is not the one that runs the session now, so it cannot ask")
	}
	if r.Caller.Delegated {
		return errorf(CodeDelegated, "a sub-agent cannot ask the user. Go on with what does not depend on the answer, "+
			"and put the open question into your final response")
	}
	return checkIntent(r, bounded)
}

// checkIntent: what permits something says what, shows it, and never ends by time.
func checkIntent(r Request, bounded bool) *Error {
	if bounded && r.Kind.Permits() {
		return errorf(CodeBadIntent, "a %s waits for a person's word and takes no timeout", r.Kind)
	}
	if r.Kind != KindPlanReview {
		if r.Intent != nil {
			return errorf(CodeBadIntent, "intent: only a plan review has one")
		}
		return nil
	}
	switch {
	case r.Intent == nil || r.Intent.Kind != string(KindPlanReview):
		return errorf(CodeBadIntent, "intent.kind must be %q", KindPlanReview)
	case len(r.Questions) != 1:
		return errorf(CodeBadIntent, "questions: a plan review asks 1, got %d", len(r.Questions))
	case !slices.ContainsFunc(r.Questions[0].Options, func(o session.Option) bool { return o.Label == r.Intent.Approve }):
		return errorf(CodeBadIntent, "intent.approve: %q is no label of the question", r.Intent.Approve)
	case strings.TrimSpace(r.Questions[0].Detail) == "":
		return errorf(CodeBadIntent, "questions[0].detail is blank; the plan must be there")
	}
	return nil
}

// CheckBatch tells why a batch does not answer the questions. Its error is
// BAD_ANSWER and names the question and the labels that it has.
func CheckBatch(questions []session.Question, batch []session.Answer) *Error {
	return badAnswer(session.CheckBatch(questions, batch))
}

// CheckAnswers is CheckBatch as a card of the kind takes it. What permits
// something has no text of its own to take: words go with one of its options.
func CheckAnswers(kind Kind, questions []session.Question, batch []session.Answer) *Error {
	if !kind.Permits() {
		return CheckBatch(questions, batch)
	}
	if e := badAnswer(session.CheckBatchWithWords(questions, batch)); e != nil {
		return e
	}
	for _, a := range batch {
		if len(a.Selected) > 0 || strings.TrimSpace(a.Custom) == "" {
			continue
		}
		for _, q := range questions {
			if q.ID == a.ID {
				return errorf(CodeBadAnswer, "question %q takes one of its options, with words beside it, and no words alone; its options are %s", q.ID, labels(q))
			}
		}
	}
	return nil
}

func labels(q session.Question) string {
	list := make([]string, len(q.Options))
	for i, o := range q.Options {
		list[i] = strconv.Quote(o.Label)
	}
	return strings.Join(list, ", ")
}

func badAnswer(err error) *Error {
	if err == nil {
		return nil
	}
	return errorf(CodeBadAnswer, "%v", err)
}

// inOrder is a batch that was checked, in the order of the questions and without nulls.
func inOrder(questions []session.Question, batch []session.Answer) []session.Answer {
	out := make([]session.Answer, 0, len(questions))
	for _, q := range questions {
		for _, a := range batch {
			if a.ID == q.ID {
				a.Selected = append([]string{}, a.Selected...)
				out = append(out, a)
			}
		}
	}
	return out
}
