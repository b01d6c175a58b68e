// Package permission decides what tools may touch: the three levels, the
// workspace, approvals, and the kernel sandbox that holds commands to the same
// rule.
package permission

import "context"

// Level is what a session may do without asking.
type Level string

// The levels, narrowest first.
const (
	ReadOnly       Level = "read-only"
	WorkspaceWrite Level = "workspace-write"
	FullAccess     Level = "full-access"
)

// What happens to a request that needs a yes.
const (
	ApproveAsk   = "ask"   // a person is asked
	ApproveNever = "never" // it is denied
)

// Request asks a person for one thing that the level does not allow.
type Request struct {
	Tool   string
	CallID string
	Title  string // one line: what would happen
	Detail string // the exact command or diff
	Prefix string // of a command: what "yes, for this session" would cover; else ""
	Reason string // why it needs a yes
}

// Decision is a person's word, or its absence.
type Decision struct {
	Allowed    bool
	ForSession bool   // with Allowed: the request's Prefix is allowed from now on
	Message    string // told to the model when not allowed: who refused, and why
}

// Approver asks. Nobody to ask, a timeout and an error are all a no.
type Approver interface {
	Approve(ctx context.Context, r Request) Decision
}
