package remote

import (
	"encoding/json"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// ProtocolVersion is the version that initialize answers with.
const ProtocolVersion = 1

// Methods.
const (
	MethodInitialize = "initialize"
	MethodPing       = "ping"
	MethodShutdown   = "shutdown"      // stdio only
	MethodClose      = "session/close" // stdio only
	MethodSessions   = "session/list"  // stdio only
	MethodPrompt     = "session/prompt"
	MethodSteer      = "session/steer"
	MethodCancel     = "session/cancel"
	MethodRead       = "session/read"
	MethodQuestions  = "questions/list"
	MethodAttach     = "questions/attachWait"
	MethodDetach     = "questions/detach"
	MethodRespond    = "questions/respond"
	MethodAnswer     = "questions/answer"
	MethodWithdraw   = "questions/withdraw"
)

// Notifications.
const (
	NoteEvent     = "session.event"
	NoteStatus    = "session.status"
	NoteDelta     = "session.delta"
	NoteRequest   = "questions/request"
	NoteSettled   = "questions/settled"
	NoteWait      = "questions/wait"
	NoteWaitEnded = "questions/waitEnded"

	NoteSubagentStarted  = "subagent.started"
	NoteSubagentFinished = "subagent.finished"
)

// Parameters. A field without omitempty or omitzero has to be there; a field that is not
// listed is refused, and so is an empty text where the tag says empty:"no", so that a
// variable that was never set does not pass for a parameter that was left out.

// Ref names the session. On a control socket it may be left out.
type Ref struct {
	SessionID string `json:"sessionId,omitempty" empty:"no"`
}

func (r Ref) sessionID() string { return r.SessionID }

// InitializeParams open a connection. On a control socket all of them may be left out.
type InitializeParams struct {
	Cwd          string              `json:"cwd,omitempty" empty:"no"`
	Model        string              `json:"model,omitempty" empty:"no"`
	Mode         string              `json:"mode,omitempty" empty:"no"`
	Timeout      *Whole              `json:"timeout,omitempty"` // seconds
	Permission   string              `json:"permission,omitempty" empty:"no"`
	Capabilities *ClientCapabilities `json:"capabilities,omitempty"`
}

// ClientCapabilities say what a client can do for a session.
type ClientCapabilities struct {
	Questions bool `json:"questions,omitempty"` // somebody can be asked
	Approvals bool `json:"approvals,omitempty"`
}

// ContentBlock is a piece of a message from a client. Clients send text alone.
type ContentBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MessageParams are those of session/prompt and session/steer.
type MessageParams struct {
	Ref
	ContentBlocks []ContentBlock `json:"contentBlocks"`
}

// CancelParams are those of session/cancel.
type CancelParams struct {
	Ref
	KeepInbox bool `json:"keepInbox,omitempty"`
}

// ReadParams are those of session/read.
type ReadParams struct {
	Ref
	FromSeq Whole `json:"fromSeq,omitempty"`
}

// CallParams name a question's call.
type CallParams struct {
	Ref
	CallID string `json:"callId"`
}

// RespondParams hold the foreground outcome of a wait: just one of answers and error.
type RespondParams struct {
	Ref
	CallID  string           `json:"callId"`
	Answers []session.Answer `json:"answers,omitzero"` // an empty batch is one that does not answer
	Error   *RejectReason    `json:"error,omitempty"`
}

// RejectReason ends a wait without an answer.
type RejectReason struct {
	Code string `json:"code"` // question.CodeTimedOut or question.CodeCancelled
}

// AnswerParams hold a late answer.
type AnswerParams struct {
	Ref
	CallID  string           `json:"callId"`
	Answers []session.Answer `json:"answers"`
}

// Results.

// InitializeResult says who serves.
type InitializeResult struct {
	ServerInfo      ServerInfo         `json:"serverInfo"`
	ProtocolVersion int                `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
}

// ServerInfo names the server.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ServerCapabilities say what may be answered over this connection.
type ServerCapabilities struct {
	Questions bool `json:"questions"`
	Approvals bool `json:"approvals"` // approvals and plan reviews too
}

// MessageResult is the receipt of a message. It comes once the message is on disk.
type MessageResult struct {
	SessionID string `json:"sessionId,omitempty"`
	MessageID string `json:"messageId"`
}

// ReadResult is a page of the log.
type ReadResult struct {
	Header  session.Header    `json:"header"`
	Events  []json.RawMessage `json:"events"` // as logged
	NextSeq int64             `json:"nextSeq"`
	More    bool              `json:"more"`
}

// AttachResult answers questions/attachWait.
type AttachResult struct {
	Attached bool `json:"attached"`
}

// AcceptResult answers questions/respond and questions/answer.
type AcceptResult struct {
	Accepted bool `json:"accepted"`
}

// WithdrawResult answers questions/withdraw.
type WithdrawResult struct {
	Withdrawn bool `json:"withdrawn"`
}

// Empty is the result {}.
type Empty struct{}

// Payloads of notifications.

// StatusNote is the payload of session.status.
type StatusNote struct {
	SessionID string `json:"sessionId"`
	Status    string `json:"status"`
}

// EventNote is the payload of session.event.
type EventNote struct {
	SessionID string          `json:"sessionId"`
	Event     json.RawMessage `json:"event"`
}

// DeltaNote is the payload of session.delta.
type DeltaNote struct {
	SessionID string `json:"sessionId"`
	Delta
}

// RequestNote is the payload of questions/request: a foreground wait has opened.
type RequestNote struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
	// Kind tells questions from approvals and plan reviews, which may be
	// read-only on this connection.
	Kind      question.Kind      `json:"kind"`
	Questions []session.Question `json:"questions"`
	Timed     bool               `json:"timed"`
}

// SettledNote is the payload of questions/settled.
type SettledNote struct {
	SessionID string           `json:"sessionId"`
	CallID    string           `json:"callId"`
	Answers   []session.Answer `json:"answers"`
}

// SubagentNote is the payload of subagent.started and subagent.finished.
type SubagentNote struct {
	SessionID      string `json:"sessionId"` // of the session that delegated
	ChildSessionID string `json:"childSessionId"`
	Description    string `json:"description"`
	FinishReason   string `json:"finishReason,omitempty"` // of one that has finished, where it is known
}

// WaitNote is the payload of questions/wait. It follows an attachWait that
// answered true.
type WaitNote struct {
	SessionID   string `json:"sessionId"`
	CallID      string `json:"callId"`
	RemainingMS int64  `json:"remainingMs"` // -1 = the wait has no end of its own
}

// WaitEndedNote is the payload of questions/waitEnded.
type WaitEndedNote struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
	Outcome   string `json:"outcome"` // answered, pending, aborted or cancelled
	Mine      bool   `json:"mine"`
}
