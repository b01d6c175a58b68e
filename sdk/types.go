package deepseek

import "encoding/json"

// Option is one choice of a question.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Question is one question of a batch. Without options it is answered in words.
type Question struct {
	ID          string   `json:"id"`
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"`
	Detail      string   `json:"detail,omitempty"` // longer text: a command, a diff, a plan
	Options     []Option `json:"options,omitempty"`
	MultiSelect bool     `json:"multi_select,omitempty"`
}

// Answer answers one question. No label and no words mean that it is skipped.
type Answer struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"`         // labels; one at most unless the question is MultiSelect
	Custom   string   `json:"custom,omitempty"` // words instead of, or with MultiSelect beside, the labels
}

// Kinds of waits.
const (
	KindQuestion   = "question"
	KindLegacy     = "legacy" // a question without a time limit
	KindApproval   = "approval"
	KindPlanReview = "plan-review"
)

// QuestionRequest is what a handler is given: a batch that wants one answer a question.
type QuestionRequest struct {
	SessionID string     `json:"sessionId"`
	CallID    string     `json:"callId"`
	Kind      string     `json:"kind"`
	Questions []Question `json:"questions"`
	Timed     bool       `json:"timed"` // the wait ends by itself, and the question then stays answerable
	// RemainingMS is what was left when the handler was called; negative without a limit.
	RemainingMS int64 `json:"remainingMs"`
}

// OpenQuestion is a question that has no answer.
type OpenQuestion struct {
	CallID    string     `json:"callId"`
	State     string     `json:"state"`  // open or continued
	Queued    bool       `json:"queued"` // an answer is queued that the agent has not read yet
	Questions []Question `json:"questions"`
	Answer    string     `json:"answer"` // the command that answers it, ready for a shell
}

// Usage is tokens and cost.
type Usage struct {
	InputTokens     int64    `json:"inputTokens"` // without cache hits
	CacheReadTokens int64    `json:"cacheReadTokens"`
	OutputTokens    int64    `json:"outputTokens"`
	ReasoningTokens int64    `json:"reasoningTokens,omitempty"`
	CostUSD         *float64 `json:"costUsd,omitempty"` // nil where no price is known
}

// Event is one event of a session's log.
type Event struct {
	Seq  int64           `json:"seq"`
	Type string          `json:"type"`
	Time int64           `json:"time"` // ms since the epoch
	Data json.RawMessage `json:"data"`
}

// RunResult is what the owner of an interval may say of it. Nothing in it is
// attributed to the task's message.
type RunResult struct {
	SessionID     string         `json:"sessionId"`
	MessageID     string         `json:"messageId"`     // of the task
	FinalResponse string         `json:"finalResponse"` // text of the last assistant message that has text
	FinishReason  *string        `json:"finishReason"`  // how the last turn ended; nil if none ended
	Usage         Usage          `json:"usage"`         // summed over the interval
	Steps         int            `json:"steps"`
	DurationMS    int64          `json:"durationMs"` // measured by this client
	Denied        int            `json:"denied"`     // approvals that were refused
	Questions     []OpenQuestion `json:"questions"`  // without an answer when the agent was idle
	Events        []Event        `json:"events"`     // of the interval, from the task's receipt on
	Error         *TurnError     `json:"error,omitempty"`
}

// TurnError is why the last turn of an interval failed.
type TurnError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // of HTTP
}

// Session is a row of the list of sessions.
type Session struct {
	ID            string `json:"id"`
	Path          string `json:"path"`
	Cwd           string `json:"cwd"`
	CreatedAt     int64  `json:"createdAt"` // ms since the epoch
	UpdatedAt     int64  `json:"updatedAt"`
	Live          bool   `json:"live"`
	Questions     int    `json:"questions"` // that wait for an answer
	Task          string `json:"task"`      // its first words
	ParentSession string `json:"parentSession,omitempty"`
	Error         string `json:"error,omitempty"` // why the file cannot be read
}

// Methods of notifications.
const (
	NoteEvent    = "session.event"
	NoteStatus   = "session.status"
	NoteDelta    = "session.delta"
	NoteQuestion = "questions/request"
	NoteSettled  = "questions/settled"
)

// Notification is something that the server told.
type Notification struct {
	Method    string
	SessionID string
	Params    json.RawMessage
	Event     *Event // of NoteEvent
}
