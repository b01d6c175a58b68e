package cli

import (
	"context"

	"deepseek/internal/permission"
	"deepseek/internal/session"
)

// approver asks a person for what the level does not allow, and logs that it
// did and what came of it. Nobody to ask is a no.
type approver struct{ owner *owner }

// Approve implements permission.Approver.
func (a *approver) Approve(ctx context.Context, r permission.Request) permission.Decision {
	o := a.owner
	err := o.agent.Record(ctx, session.TypeApprovalAsked, session.ApprovalAsked{
		CallID: r.CallID, Tool: r.Tool, Title: r.Title, Detail: r.Detail, Reason: r.Reason,
	})
	if err != nil {
		return permission.Decision{Message: err.Error()}
	}
	d := permission.Decision{Message: r.Reason + ". This needs approval, and nobody could be asked. Do what needs none, or tell the user what is missing."}
	if o.settings.Approve == permission.ApproveNever {
		d.Message = r.Reason + ". This needs approval, and approvals are denied here (--approve never). Do what needs none, or tell the user what is missing."
	}
	// The refusal stands whether or not ctx has ended meanwhile.
	err = o.agent.Record(context.WithoutCancel(ctx), session.TypeApprovalDecided, session.ApprovalDecided{
		CallID: r.CallID, Decision: session.DecisionDenied, Message: d.Message,
	})
	if err != nil {
		return permission.Decision{Message: err.Error()}
	}
	return d
}
