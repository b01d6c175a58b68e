package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"deepseek/internal/permission"
	"deepseek/internal/question"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// approver asks a person for what the level does not allow, and logs that it
// did and what came of it. Nobody to ask, and everything else that is not a
// person's yes, is a no. It may be called from several goroutines: each approval
// has a card of its own.
//
// mu owns asked.
type approver struct {
	questions *question.Service
	// record logs an event and returns once it is on disk.
	record func(ctx context.Context, typ string, data any) error
	never  func() bool // --approve never: it is denied without asking
	// rest stops the clocks of the call while a person is waited for. May be nil.
	rest   func(context.Context) (resume func())
	key    redact.Key // shown and logged nowhere
	child  string     // what the sub-agent that asks is doing; "" = the root asks
	prefix string     // of the waits of a sub-agent, whose call ids may be those of others

	mu    sync.Mutex
	asked map[string]int // by call: how many approvals so far
}

// Approve implements permission.Approver. How it was decided is on disk when it
// returns: before that, neither the tool nor the person is told.
func (a *approver) Approve(ctx context.Context, r permission.Request) permission.Decision {
	what := question.Approval{
		Title: a.key.String(r.Title), Reason: a.key.String(r.Reason), Detail: a.key.String(r.Detail), Prefix: a.key.String(r.Prefix),
	}
	if a.child != "" {
		what.Title = fmt.Sprintf("%s (asked by the sub-agent %q)", what.Title, a.child)
	}
	// What was asked is also decided in the log, cancelled or not.
	err := a.record(context.WithoutCancel(ctx), session.TypeApprovalAsked, session.ApprovalAsked{
		CallID: r.CallID, Tool: r.Tool, Title: what.Title, Detail: what.Detail, Reason: what.Reason,
	})
	if err != nil {
		return permission.Decision{Message: "This needs approval, and asking could not be logged: " + err.Error()}
	}
	if a.never() {
		v := question.Verdict{Because: "This needs approval, and approvals are denied here (--approve never)"}
		return a.decide(r, what, v, false)
	}
	if a.rest != nil {
		defer a.rest(ctx)()
	}
	var d permission.Decision
	logged := false // by whoever settles the wait, which has ended when Ask returns
	o := a.questions.Ask(ctx, question.Request{
		CallID: a.waitID(r.CallID), Kind: question.KindApproval, Caller: question.Caller{Live: true},
		Questions: []session.Question{what.Question()},
		Commit: func(o question.Outcome) error {
			logged = true
			return a.log(r, what, what.Verdict(o), cutShort(o), &d)
		},
	})
	switch {
	case !logged:
		return a.decide(r, what, what.Verdict(o), cutShort(o))
	case o.Err != nil && o.Err.Code == question.CodeLogWrite:
		return permission.Decision{Message: what.Verdict(o).Because}
	}
	return d
}

// waitID names the wait of an approval. It is neither that of the call itself,
// which may be a question's, nor that of another approval of the call.
func (a *approver) waitID(callID string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]int{}
	}
	a.asked[callID]++
	if n := a.asked[callID]; n > 1 {
		return fmt.Sprintf("%s%s:approval:%d", a.prefix, callID, n)
	}
	return a.prefix + callID + ":approval"
}

// cutShort tells whether the run was cancelled before anybody had decided.
func cutShort(o question.Outcome) bool { return o.Err != nil && o.Err.Code == question.CodeAborted }

// decide logs a verdict that no wait brought. What cannot be logged is a no.
func (a *approver) decide(r permission.Request, what question.Approval, v question.Verdict, canceled bool) permission.Decision {
	var d permission.Decision
	if err := a.log(r, what, v, canceled, &d); err != nil {
		return permission.Decision{Message: "This needs approval, and the decision could not be logged: " + err.Error()}
	}
	return d
}

// log logs the verdict and then says in d what it comes to. It stands whether or
// not the run was cancelled meanwhile, so nothing but the disk bounds it.
func (a *approver) log(r permission.Request, what question.Approval, v question.Verdict, canceled bool, d *permission.Decision) error {
	e := session.ApprovalDecided{CallID: r.CallID, Decision: session.DecisionDenied, Canceled: canceled}
	switch {
	case v.ForSession:
		e.Decision, e.Prefix = session.DecisionSession, what.Prefix
	case v.Allowed:
		e.Decision = session.DecisionOnce
	default:
		e.Message = fmt.Sprintf("%s. %s. Nothing was done. Go on with what needs no approval, or tell the user what is missing.", what.Reason, strings.TrimRight(v.Because, "."))
	}
	if err := a.record(context.Background(), session.TypeApprovalDecided, e); err != nil {
		return err
	}
	*d = permission.Decision{Allowed: v.Allowed, ForSession: v.ForSession, Message: e.Message}
	return nil
}

// approver asks for the session's agent. That of a sub-agent asks on the root's
// card, and what its parent does not permit it does not either.
func (o *owner) approver() *approver {
	root := o.root()
	a := &approver{
		questions: root.questions, record: o.recordApproval, key: o.key, rest: o.rest,
		never: func() bool { return root.settings.Approve == permission.ApproveNever },
	}
	if d := o.delegation; d != nil {
		a.child, a.prefix = d.task.Description, o.header.ID+":"
	}
	return a
}
