package session

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Block is one piece of a message's content.
type Block struct {
	Type      string // BlockText, BlockReasoning or BlockToolCall
	Text      string // of text and reasoning
	ID        string // of a tool call
	Name      string
	Arguments string // the raw string that the model produced
}

// Kinds of blocks.
const (
	BlockText      = "text"
	BlockReasoning = "reasoning"
	BlockToolCall  = "tool-call"
)

// MarshalJSON writes just the keys of the block's kind.
func (b Block) MarshalJSON() ([]byte, error) { return b.appendJSON(make([]byte, 0, b.room())), nil }

// room is about how long a block is as JSON.
func (b Block) room() int { return len(b.Text) + len(b.Arguments) + len(b.Text)/16 + 128 }

func (b Block) appendJSON(out []byte) []byte {
	out = appendString(append(out, `{"type":`...), b.Type)
	if b.Type == BlockToolCall {
		out = appendString(append(out, `,"id":`...), b.ID)
		out = appendString(append(out, `,"name":`...), b.Name)
		out = appendString(append(out, `,"arguments":`...), b.Arguments)
	} else {
		out = appendString(append(out, `,"text":`...), b.Text)
	}
	return append(out, '}')
}

// UnmarshalJSON reads any of the kinds; an unknown kind is an error.
func (b *Block) UnmarshalJSON(data []byte) error {
	var v struct {
		Type, Text, ID, Name, Arguments string
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v.Type {
	case BlockText, BlockReasoning, BlockToolCall:
	default:
		return fmt.Errorf("unknown content block %q", v.Type)
	}
	*b = Block{Type: v.Type, Text: v.Text, ID: v.ID, Name: v.Name, Arguments: v.Arguments}
	return nil
}

// TextOf joins the text blocks.
func TextOf(blocks []Block) string { return joined(blocks, BlockText) }

// ReasoningOf joins the reasoning blocks.
func ReasoningOf(blocks []Block) string { return joined(blocks, BlockReasoning) }

func joined(blocks []Block, kind string) string {
	only, n := "", 0
	for _, b := range blocks {
		if b.Type == kind {
			only = b.Text
			n++
		}
	}
	if n <= 1 {
		return only // not a copy: it may be megabytes
	}
	var s strings.Builder
	for _, b := range blocks {
		if b.Type == kind {
			s.WriteString(b.Text)
		}
	}
	return s.String()
}

// Source says where a message comes from. Which of the other fields count is the kind's.
type Source struct {
	Kind     string `json:"kind"`
	Provider string `json:"provider,omitempty"` // model
	Model    string `json:"model,omitempty"`
	CallID   string `json:"callId,omitempty"` // user-question-reply
	Outcome  string `json:"outcome,omitempty"`
	GoalID   string `json:"goalId,omitempty"` // goal
	Revision int    `json:"revision,omitempty"`
	Round    int    `json:"round,omitempty"`
}

// Kinds of sources.
const (
	SourceUser              = "user"
	SourceModel             = "model"
	SourceTool              = "tool"
	SourceGoal              = "goal"
	SourceSubagentSettled   = "subagent-settled"
	SourceAgentInstructions = "agent-instructions"
	SourceQuestionReply     = "user-question-reply"
	SourcePlugin            = "plugin"
)

// UserMessage is a message on its way to the model: queued by a splice, admitted by user/message.
type UserMessage struct {
	ID      string  `json:"id"` // UUID v7, kept from the queue to the admission
	Role    string  `json:"role"`
	Content []Block `json:"content"`
	Source  Source  `json:"source"`
}

// NewUserMessage is a message of one text block.
func NewUserMessage(id, text string, src Source) UserMessage {
	return UserMessage{ID: id, Role: "user", Content: []Block{{Type: BlockText, Text: text}}, Source: src}
}

// ModelMessage is what the model said in one request.
type ModelMessage struct {
	ID      string  `json:"id"`
	Role    string  `json:"role"` // "assistant"
	Content []Block `json:"content"`
	Source  Source  `json:"source"`
}

// ToolMessage answers one tool call.
type ToolMessage struct {
	ID         string `json:"id"`
	Role       string `json:"role"` // "tool"
	ToolCallID string `json:"toolCallId"`
	Content    string `json:"content"` // of an error: begins with "CODE: "
	IsError    bool   `json:"isError"`
}

// Usage counts the tokens of one request, or of an interval.
type Usage struct {
	InputTokens     int64    `json:"inputTokens"` // without cache hits
	CacheReadTokens int64    `json:"cacheReadTokens"`
	OutputTokens    int64    `json:"outputTokens"`
	ReasoningTokens int64    `json:"reasoningTokens,omitempty"`
	CostUSD         *float64 `json:"costUsd,omitempty"` // absent where no price is known
}

// Add sums two usages. The cost of a sum is known only as far as it was known for its parts.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	if v.CostUSD != nil {
		c := *v.CostUSD
		if u.CostUSD != nil {
			c += *u.CostUSD
		}
		u.CostUSD = &c
	}
}

// Call is a tool call as a model's message holds it.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// Message is one entry of the history that a model is sent, independent of any wire.
type Message struct {
	Role      Role
	Text      string // user and assistant text; the content of a tool's answer
	Reasoning string // assistant
	Calls     []Call // assistant
	CallID    string // tool
}

// Role is who speaks.
type Role string

// The roles of a history.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// ToolSpec is a tool as the model is told about it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON schema object, compact, in a fixed order
}

// Question is one question of an ask_user_question call.
type Question struct {
	ID          string   `json:"id"`
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"`
	Detail      string   `json:"detail,omitempty"` // longer text for the card: a plan, a diff; never set by a model
	Options     []Option `json:"options,omitempty"`
	MultiSelect bool     `json:"multi_select,omitempty"`
}

// Option is one choice of a question.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Answer answers one question. Skipped is no label and no custom text.
type Answer struct {
	ID       string   `json:"id"`
	Selected []string `json:"selected"` // labels; never null
	Custom   string   `json:"custom,omitempty"`
}
