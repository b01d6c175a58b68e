package session

import (
	"fmt"
	"strings"
)

// fate is what the log says of a call beside its start, kept for the text that
// repair writes should the program end before there is a result.
type fate struct {
	asked   int  // approvals that have no decision yet
	refused bool // the last decision was a no
	allowed bool // there was a yes, after which something may have been done
	child   *Subagent
}

func (f *fate) decided(d ApprovalDecided) {
	f.asked = max(f.asked-1, 0)
	f.refused = d.Decision == DecisionDenied
	f.allowed = f.allowed || !f.refused
}

// untouched says why nothing was done by a call that needs a yes before it does
// anything; "" where something may have been. The approvals of a sub-agent stand
// at the call that delegated, and say nothing of what else it did.
func (f *fate) untouched() string {
	switch {
	case f.child != nil || f.allowed:
		return ""
	case f.asked > 0:
		return "it still waited for its approval, which was neither given nor refused"
	case f.refused:
		return "its approval had not been given"
	}
	return ""
}

// subagent names the sub-agent of a call that delegated, in words that end a
// line; "" where there was none.
func (f *fate) subagent() string {
	if f.child == nil {
		return ""
	}
	s := fmt.Sprintf("the sub-agent %q, session %s", strings.Join(strings.Fields(f.child.Description), " "), f.child.ChildSessionID)
	if f.asked > 0 {
		s += ", which waited for an approval that was neither given nor refused"
	}
	return s
}

// unknown is the text of the result of a call that was started and never ended.
// plan tells whether the session is still in plan mode.
func (c *OpenCall) unknown(asked *Questions, plan bool) string {
	switch {
	case c.Name == AskTool && asked.answerable(c.ID):
		return outcomeUnknownAsk
	case c.Name == AskTool:
		return outcomeUnknownGone
	case c.Name == PlanTool && plan:
		return outcomeUnknownPlan
	case c.Name == PlanTool:
		return outcomeUnknownApproved
	case c.fate.child != nil:
		return fmt.Sprintf(outcomeUnknownChild, c.fate.subagent())
	}
	switch why := c.fate.untouched(); {
	case c.fate.asked > 0 && why != "":
		return fmt.Sprintf(outcomeUnknownWaiting, why)
	case why != "":
		return fmt.Sprintf(outcomeUnknownRefused, why)
	}
	return outcomeUnknown
}

// Texts of the results that repair writes. They end in what the model should do.
const (
	outcomeUnknown = CodeOutcomeUnknown + ": the program ended while this call was running, so what it did is not known. " +
		"Repeat it only if it is read-only or idempotent; otherwise check first what it did, or ask."
	outcomeUnknownAsk = CodeOutcomeUnknown + ": the program ended while this question waited. It is neither answered nor skipped and stays answerable; " +
		"an answer arrives later as a user message that names this callId. Go on with what does not depend on it."
	outcomeUnknownGone = CodeOutcomeUnknown + ": the program ended before this question had an answer. " + goneWithCall
	goneWithCall       = "It is neither answered nor skipped, nothing is permitted by it, and it has gone with its call: no answer to it can come. Ask again if you still need one."
	outcomeUnknownPlan = CodeOutcomeUnknown + ": the program ended before the user had decided on this plan. It is not approved and plan mode goes on; " +
		"no answer to this review can come. Call " + PlanTool + " again to have it reviewed."
	outcomeUnknownApproved = CodeOutcomeUnknown + ": the program ended while this call was running, but the user had approved a plan: plan mode is over and all tools are there. Carry the approved plan out."
	outcomeUnknownChild    = CodeOutcomeUnknown + ": the program ended while %s, was at work, so what it did is not known and it does not go on. " +
		"Check first what it did before you delegate the same again, or ask."
	outcomeUnknownWaiting = CodeOutcomeUnknown + ": the program ended while this call was open; %s, so nothing was done. It is not permitted by this. Issue it again if it is still needed."
	outcomeUnknownRefused = CodeOutcomeUnknown + ": the program ended while this call was open; %s, so nothing was done. Go on with what needs no approval, or tell the user what is missing."
	notStarted            = CodeNotStarted + ": the program ended before this call was started, so nothing was done. Issue it again if it is still needed."
)
