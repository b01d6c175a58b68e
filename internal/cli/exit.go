package cli

// The exit codes. Where several apply, those of things refused before anything
// started come first (ExitUsage, ExitDamaged, ExitBusy), then a signal's, then
// ExitFailed, then ExitPending.
const (
	ExitOK            = 0
	ExitFailed        = 1 // the run ended otherwise than completed
	ExitUsage         = 2 // usage or configuration; nothing was started, nothing written
	ExitPending       = 3 // completed with questions pending, under --fail-on-pending
	ExitBusy          = 4 // somebody else owns the session, or it cannot be reached
	ExitNotAnswerable = 5
	ExitDamaged       = 6 // the session file is damaged or from a newer version
	ExitSignal        = 128
)

// Codes of failures that have no code of their own elsewhere.
const (
	CodeInternal       = "INTERNAL"
	CodeAborted        = "ABORTED"
	CodeOutputWrite    = "OUTPUT_WRITE"
	CodeSessionBusy    = "SESSION_BUSY"
	CodeSessionDamaged = "SESSION_DAMAGED"
	CodeSessionTooNew  = "SESSION_TOO_NEW"
	CodeLogWrite       = "LOG_WRITE"
	CodeCallerIsTool   = "CALLER_IS_TOOL"
	CodeFailed         = "FAILED"
)
