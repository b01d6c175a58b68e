package session

// Types of events. The names and payloads follow the DeepSeek harness.
const (
	TypeInboxSpliced      = "agent/inbox/spliced"
	TypeTurnStart         = "turn/start"
	TypeTurnEnd           = "turn/end"
	TypeStepStart         = "step/start"
	TypeStepEnd           = "step/end"
	TypeUserMessage       = "user/message"
	TypeRequestHeader     = "request/header"
	TypeRequestContext    = "request/context"
	TypeAssistantMessage  = "assistant/message"
	TypeToolCall          = "tool/call"
	TypeToolResult        = "tool/result"
	TypePTCDispatchStart  = "tool/ptc-dispatch-start"
	TypePTCDispatch       = "tool/ptc-dispatch"
	TypeLLMRetry          = "llm/retry"
	TypeLLMRetryStarted   = "llm/retry-started"
	TypeCompactionStart   = "compaction/start"
	TypeCompactionSummary = "compaction/summary"
	TypeCompactionEnd     = "compaction/end"
	TypeCompactionPrune   = "compaction/prune"
	TypeSettings          = "session/settings"
	TypeGoalChange        = "goal/change"
	TypePlanMode          = "plan/mode"
	TypePermissionPreset  = "permission/preset"
	TypeApprovalAsked     = "approval/asked"
	TypeApprovalDecided   = "approval/decided"
	TypeTodoWrite         = "todo/write"
	TypeSubagent          = "subagent/descriptor"
	TypeTitle             = "session/title"
	TypeEndSeed           = "session/end-seed"
)

var known = map[string]bool{
	TypeInboxSpliced: true, TypeTurnStart: true, TypeTurnEnd: true, TypeStepStart: true, TypeStepEnd: true,
	TypeUserMessage: true, TypeRequestHeader: true, TypeRequestContext: true, TypeAssistantMessage: true,
	TypeToolCall: true, TypeToolResult: true, TypePTCDispatchStart: true, TypePTCDispatch: true,
	TypeLLMRetry: true, TypeLLMRetryStarted: true, TypeCompactionStart: true, TypeCompactionSummary: true,
	TypeCompactionEnd: true, TypeCompactionPrune: true, TypeSettings: true, TypeGoalChange: true,
	TypePlanMode: true, TypePermissionPreset: true, TypeApprovalAsked: true, TypeApprovalDecided: true,
	TypeTodoWrite: true, TypeSubagent: true, TypeTitle: true, TypeEndSeed: true,
}

// KnownType tells whether this build understands events of the type. A reader
// refuses a file with any other, unless the event is ignorable.
func KnownType(t string) bool { return known[t] }

// Lists of the inbox.
const (
	NextTurn = "next-turn"
	NextStep = "next-step"
)

// OutcomeCanceled marks a splice that discards messages.
const OutcomeCanceled = "canceled"

// InboxSpliced is the only durable inbox event: an insertion is the receipt of
// a message, a removal with an outcome a discard, one without a claim.
type InboxSpliced struct {
	Target       string        `json:"target"`
	Start        int           `json:"start"`
	RemovedCount int           `json:"removedCount,omitempty"`
	Inserted     []UserMessage `json:"inserted"` // never null
	Outcome      string        `json:"outcome,omitempty"`
}

// TurnStart opens a turn. Turns and steps count from 1.
type TurnStart struct {
	Turn int `json:"turn"`
}

// TurnEnd closes a turn.
type TurnEnd struct {
	Turn   int    `json:"turn"`
	Reason Reason `json:"reason"`
}

// Reason says why a turn ended.
type Reason struct {
	Kind  string     `json:"kind"`
	Cause *Cause     `json:"reason,omitempty"` // of aborted
	Error *ErrorInfo `json:"error,omitempty"`  // of error
}

// Kinds of turn ends.
const (
	EndCompleted   = "completed"
	EndAborted     = "aborted"
	EndBlocked     = "blocked"
	EndError       = "error"
	EndMaxTokens   = "max-tokens"
	EndMaxSteps    = "max-steps"
	EndInterrupted = "interrupted" // written by repair only
)

// Cause says who cancelled.
type Cause struct {
	Kind string `json:"kind"`           // user, parent, hook, disposed
	Hook string `json:"hook,omitempty"` // of hook: "duration"
}

// Kinds of causes.
const (
	CauseUser     = "user"
	CauseParent   = "parent"
	CauseHook     = "hook"
	CauseDisposed = "disposed"
)

// ErrorInfo is an error as the log and results show it.
type ErrorInfo struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // of HTTP
}

// StepMark opens or closes a step.
type StepMark struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// RequestConfig is what a request is configured with.
type RequestConfig struct {
	Provider        string   `json:"provider"`
	Model           string   `json:"model"`
	ReasoningEffort string   `json:"reasoningEffort,omitempty"`
	MaxTokens       int      `json:"maxTokens,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
}

// HeaderBody is what stands before the messages of a request.
type HeaderBody struct {
	Config RequestConfig `json:"config"`
	System string        `json:"system,omitempty"`
	Tools  []ToolSpec    `json:"tools,omitempty"`
}

// RequestHeader is logged when it differs from the last, and once on a resume.
type RequestHeader struct {
	Header HeaderBody `json:"header"`
	Reason string     `json:"reason"`
}

// Reasons of a request header.
const (
	HeaderInitial = "initial"
	HeaderResume  = "resume"
	HeaderChange  = "change"
)

// RequestContext is logged when it changes.
type RequestContext struct {
	Provider      string `json:"provider"`
	Model         string `json:"model"`
	ContextWindow int    `json:"contextWindow,omitempty"` // tokens
}

// AssistantMessage is a committed answer of the model.
type AssistantMessage struct {
	Turn        int          `json:"turn"`
	Step        int          `json:"step"`
	Message     ModelMessage `json:"message"`
	Usage       *Usage       `json:"usage,omitempty"`
	Interrupted bool         `json:"interrupted,omitempty"`
}

// ToolCall is logged when a call starts.
type ToolCall struct {
	Turn      int    `json:"turn"`
	Step      int    `json:"step"`
	CallID    string `json:"callId"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // raw
}

// ToolResult answers a call.
type ToolResult struct {
	Turn    int         `json:"turn"`
	Step    int         `json:"step"`
	Message ToolMessage `json:"message"`
	Error   *ToolError  `json:"error,omitempty"`
	Meta    *ToolMeta   `json:"meta,omitempty"`
}

// ToolError names the tool and the code of a failed call.
type ToolError struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// ToolMeta is what the program, not the model, keeps of a result.
type ToolMeta struct {
	Observed   []Observed `json:"observed,omitempty"`   // file versions the model has now seen
	Diff       string     `json:"diff,omitempty"`       // unified
	Path       string     `json:"path,omitempty"`       // the file that was changed
	Spill      string     `json:"spill,omitempty"`      // file name in the spill folder
	ExitCode   *int       `json:"exitCode,omitempty"`   // of a command
	Signal     string     `json:"signal,omitempty"`     // that ended a command
	DurationMS int64      `json:"durationMs,omitempty"` // of the call
	Denied     bool       `json:"denied,omitempty"`     // an approval was refused

	FinishReason string `json:"finishReason,omitempty"` // of a sub-agent
}

// Observed is a version of a file that the model has read or written.
type Observed struct {
	Path string `json:"path"` // absolute, links resolved
	Hash string `json:"hash"` // SHA-256 of the content, hex
}

// PTCStart is logged when code dispatches a sub-call.
type PTCStart struct {
	RootCallID   string `json:"rootCallId"`
	ParentCallID string `json:"parentCallId"`
	SubCallID    string `json:"subCallId"` // <parent>:ptc:<n>
	Name         string `json:"name"`
	Arguments    string `json:"arguments"`
}

// PTC is logged when a sub-call has ended.
type PTC struct {
	PTCStart
	IsError bool       `json:"isError"`
	Content string     `json:"content"`
	Error   *ToolError `json:"error,omitempty"`
}

// Retry is logged before the wait of a retry; RetryStarted after it.
type Retry struct {
	Turn    int       `json:"turn"`
	Step    int       `json:"step"`
	Attempt int       `json:"attempt"` // that failed, from 1
	DelayMS int64     `json:"delayMs"`
	Error   ErrorInfo `json:"error"`
}

// RetryStarted says that an attempt begins.
type RetryStarted struct {
	Turn    int `json:"turn"`
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
}

// Settings is what a resume takes up.
type Settings struct {
	Mode        string   `json:"mode"`    // legacy or timed
	Timeout     int      `json:"timeout"` // seconds, -1 = blocking
	MaxTimeout  *int     `json:"maxTimeout,omitempty"`
	Permission  string   `json:"permission"`
	Approve     string   `json:"approve"`
	Adaptations []string `json:"adaptations,omitempty"`
}

// CompactionStart opens a compaction of the history.
type CompactionStart struct {
	Turn int `json:"turn"`
}

// CompactionSummary says which events the message replaces that follows it.
type CompactionSummary struct {
	FromSeq   int64  `json:"fromSeq"`
	ToSeq     int64  `json:"toSeq"` // inclusive
	MessageID string `json:"messageId"`
	Usage     *Usage `json:"usage,omitempty"` // of the request that made the summary
}

// CompactionEnd closes a compaction.
type CompactionEnd struct {
	OK    bool       `json:"ok"`
	Error *ErrorInfo `json:"error,omitempty"`
	Usage *Usage     `json:"usage,omitempty"` // of a request that came to no summary
}

// CompactionPrune names the tool results whose content is left out from now on.
type CompactionPrune struct {
	Seqs []int64 `json:"seqs"`
}

// PlanMode says whether the session is in plan mode from now on.
type PlanMode struct {
	Active bool `json:"active"`
}

// TodoWrite is the whole list.
type TodoWrite struct {
	Todos []Todo `json:"todos"`
}

// Todo is one item of the list.
type Todo struct {
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
}

// ApprovalAsked is logged before an approval is asked for, or refused unasked.
type ApprovalAsked struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ApprovalDecided says what became of it.
type ApprovalDecided struct {
	CallID   string `json:"callId"`
	Decision string `json:"decision"`         // once, session or denied
	Prefix   string `json:"prefix,omitempty"` // of session
	Message  string `json:"message,omitempty"`
	// Canceled: the run was cancelled before anybody had decided. It is denied
	// all the same, but nobody refused it.
	Canceled bool `json:"canceled,omitempty"`
}

// Decisions of an approval.
const (
	DecisionOnce    = "once"
	DecisionSession = "session"
	DecisionDenied  = "denied"
)

// Subagent is logged twice: by the session that delegated, when the sub-agent
// has begun, and by the sub-agent's own.
type Subagent struct {
	CallID          string `json:"callId"` // of the parent's, which delegated
	ChildSessionID  string `json:"childSessionId"`
	ParentSessionID string `json:"parentSessionId,omitempty"` // in the sub-agent's log only
	Description     string `json:"description"`
}

// Codes of results that repair and cancel write.
const (
	CodeOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
	CodeNotStarted     = "TOOL_NOT_STARTED"
	CodeAbortedBefore  = "ABORTED_BEFORE_DISPATCH"
	CodeAskAborted     = "ASK_ABORTED"
	CodeInterrupted    = "INTERRUPTED" // of a compaction
)
