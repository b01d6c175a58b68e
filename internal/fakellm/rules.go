package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// rules are what the strictest servers hold requests to, and what this
// program promises on top: messages never change. The server's mutex guards it.
type rules struct {
	tips      [][]json.RawMessage // the last request of each conversation
	reasoning map[string]string   // signature of an answer -> the reasoning sent with it
}

type message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"`
	Reasoning  *string `json:"reasoning_content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check returns the first rule that a request breaks, or "".
func (r *rules) check(req Request, rewrites bool) string {
	var body struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string `json:"name"`
				Parameters struct {
					Type string `json:"type"`
				} `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(req.Body, &body); err != nil {
		return err.Error()
	}
	switch {
	case body.Model == "":
		return "model is missing"
	case !body.Stream || !body.Options.IncludeUsage:
		return "stream and stream_options.include_usage must be true"
	case len(req.Messages) == 0:
		return "messages is empty"
	}
	names := map[string]bool{}
	for i, t := range body.Tools {
		name := t.Function.Name
		if t.Type != "function" || !goodName.MatchString(name) || names[name] || t.Function.Parameters.Type != "object" {
			return fmt.Sprintf("tools[%d] (%q) must be of type function, with a name of its own in [A-Za-z0-9_-] and parameters of type object", i, name)
		}
		names[name] = true
	}
	if problem := r.checkMessages(req.Messages); problem != "" {
		return problem
	}
	return r.checkPrefix(req.Messages, rewrites)
}

func (r *rules) checkMessages(raw []json.RawMessage) string {
	ids := map[string]bool{}
	var owed []string // calls that the next messages must answer
	for i, b := range raw {
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Sprintf("messages[%d]: %v", i, err)
		}
		at := fmt.Sprintf("messages[%d] (%s)", i, m.Role)
		switch {
		case m.Content == nil:
			return at + ": content is null or missing"
		case len(owed) > 0 && (m.Role != "tool" || m.ToolCallID != owed[0]):
			return fmt.Sprintf("%s: expected the tool message that answers %q", at, owed[0])
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return at + ": only the first message may be the system's"
			}
		case "user":
		case "tool":
			switch {
			case len(owed) == 0:
				return fmt.Sprintf("%s: answers %q, which no call before it is waiting for", at, m.ToolCallID)
			case *m.Content == "":
				return at + ": content is empty"
			}
			owed = owed[1:]
		case "assistant":
			if *m.Content == "" && len(m.ToolCalls) == 0 {
				return at + ": neither content nor tool_calls"
			}
			for k, c := range m.ToolCalls {
				var args map[string]any
				if c.Type != "function" || c.ID == "" || len(c.ID) > 128 || ids[c.ID] || !goodName.MatchString(c.Function.Name) || json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || args == nil {
					return fmt.Sprintf("%s: tool_calls[%d] must have type function, an id of its own of at most 128 characters (%q), a name of at most 64 in [A-Za-z0-9_-] (%q), and arguments that are a JSON object (%q)", at, k, c.ID, c.Function.Name, c.Function.Arguments)
				}
				ids[c.ID] = true
				owed = append(owed, c.ID)
			}
			if want, sent := r.reasoning[signature(m)]; sent && (m.Reasoning == nil || *m.Reasoning != want) {
				return at + ": the reasoning_content that was sent with this message must be passed back"
			}
		default:
			return at + ": unknown role"
		}
		if i == len(raw)-1 && m.Role == "assistant" && len(owed) == 0 {
			return at + ": the last message must not be the assistant's"
		}
	}
	if len(owed) > 0 {
		return fmt.Sprintf("the call %q has no tool message", owed[0])
	}
	return ""
}

// checkPrefix finds the conversation that a request goes on, by an assistant
// message that both have, and holds it to beginning with what was sent before.
func (r *rules) checkPrefix(raw []json.RawMessage, rewrites bool) string {
	same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	for i, tip := range r.tips {
		if len(tip) <= len(raw) && slices.EqualFunc(tip, raw[:len(tip)], same) {
			r.tips[i] = raw
			return ""
		}
	}
	if !rewrites {
		for _, tip := range r.tips {
			if !slices.ContainsFunc(tip, func(m json.RawMessage) bool {
				return isAssistant(m) && slices.ContainsFunc(raw, func(n json.RawMessage) bool { return bytes.Equal(m, n) })
			}) {
				continue
			}
			k := 0
			for k < len(tip) && k < len(raw) && bytes.Equal(tip[k], raw[k]) {
				k++
			}
			now := "nothing"
			if k < len(raw) {
				now = string(raw[k])
			}
			return fmt.Sprintf("the messages do not begin with those of the request before: messages[%d] was %s and is %s", k, tip[min(k, len(tip)-1)], now)
		}
	}
	r.tips = append(r.tips, raw)
	return ""
}

func isAssistant(raw json.RawMessage) bool {
	return bytes.HasPrefix(raw, []byte(`{"role":"assistant"`))
}

// answered remembers what goes out.
func (r *rules) answered(s Step) {
	if s.Reasoning == "" || s.Raw != nil || s.Cut != "" || s.NoDone || s.Status != 0 && s.Status != 200 {
		return
	}
	if r.reasoning == nil {
		r.reasoning = map[string]string{}
	}
	m := message{Content: &s.Text}
	sig := signature(m)
	for _, c := range s.Calls {
		sig += "\x00" + c.ID
	}
	r.reasoning[sig] = s.Reasoning
}

func signature(m message) string {
	sig := *m.Content
	for _, c := range m.ToolCalls {
		sig += "\x00" + c.ID
	}
	return sig
}
