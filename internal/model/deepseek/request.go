package deepseek

import (
	"encoding/json"
	"slices"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// The request as it is sent. The order of the fields is the order on the wire:
// what may differ between two requests of a session stands behind the messages.
type (
	wireRequest struct {
		Model         string        `json:"model"`
		Messages      []wireMessage `json:"messages"`
		Tools         []wireTool    `json:"tools,omitempty"`
		Stream        bool          `json:"stream"`
		StreamOptions streamOptions `json:"stream_options"`
		Thinking      *thinking     `json:"thinking,omitempty"`
		Effort        string        `json:"reasoning_effort,omitempty"`
		MaxTokens     int           `json:"max_tokens,omitempty"`
		Temperature   *float64      `json:"temperature,omitempty"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	thinking struct {
		Type string `json:"type"`
	}
	wireMessage struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		Reasoning  *string    `json:"reasoning_content,omitempty"`
		ToolCalls  []sentCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	sentCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function sentFunction `json:"function"`
	}
	sentFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	wireTool struct {
		Type     string           `json:"type"`
		Function session.ToolSpec `json:"function"`
	}
)

const (
	emptyResult = "(no output)" // servers refuse an empty tool message
	effortOff   = "off"
)

// encode writes the body of a request. The same request is always the same
// bytes, and each message depends on nothing but itself and the adaptations.
func encode(req model.Request) ([]byte, error) {
	w := wireRequest{
		Model: req.Config.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		MaxTokens: req.Config.MaxTokens, Temperature: req.Config.Temperature,
		Messages: make([]wireMessage, 0, len(req.Messages)+1),
	}
	switch effort := req.Config.ReasoningEffort; effort {
	case "":
	case effortOff:
		w.Thinking = &thinking{Type: "disabled"}
	default:
		w.Thinking, w.Effort = &thinking{Type: "enabled"}, effort
	}
	if req.System != "" {
		w.Messages = append(w.Messages, wireMessage{Role: "system", Content: req.System})
	}
	reasoning := reasoningRule(req.Adaptations)
	for _, m := range req.Messages {
		w.Messages = append(w.Messages, encodeMessage(m, reasoning))
	}
	for _, t := range req.Tools {
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		w.Tools = append(w.Tools, wireTool{Type: "function", Function: t})
	}
	return session.Marshal(w)
}

func encodeMessage(m session.Message, reasoning func(string) *string) wireMessage {
	out := wireMessage{Role: string(m.Role), Content: m.Text}
	switch m.Role {
	case session.RoleTool:
		out.ToolCallID = m.CallID
		if out.Content == "" {
			out.Content = emptyResult
		}
	case session.RoleAssistant:
		out.Reasoning = reasoning(m.Reasoning)
		for _, c := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, sentCall{
				ID: c.ID, Type: "function", Function: sentFunction{Name: sentName(c.Name), Arguments: sentArguments(c.Arguments)},
			})
		}
	}
	return out
}

// reasoningRule says what is sent of a message's reasoning; the latest
// adaptation of the two counts.
func reasoningRule(adaptations []string) func(string) *string {
	for _, a := range slices.Backward(adaptations) {
		switch a {
		case NoReasoning:
			return func(string) *string { return nil }
		case ReasoningRequired:
			return func(s string) *string { return &s }
		}
	}
	return func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
}

// sentArguments are the arguments of a past call as servers accept them: the
// model's own text if that is a JSON object. Anything else is refused by some
// servers with an error that would come back with every request from then on,
// so nothing becomes {} and other text is wrapped: {"_invalid_arguments":"…"}.
func sentArguments(raw string) string {
	if complete(raw) {
		return raw
	}
	if raw == "" {
		return "{}"
	}
	wrapped, err := session.Marshal(struct {
		Raw string `json:"_invalid_arguments"`
	}{raw})
	if err != nil { // a string always encodes
		return "{}"
	}
	return string(wrapped)
}
