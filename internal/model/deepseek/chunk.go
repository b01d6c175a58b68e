package deepseek

import (
	"encoding/json"
	"errors"
	"fmt"

	"deepseek/internal/session"
)

// chunk is what one event of the stream says. Strings may hold unfinished
// UTF-8, see unquote.
type chunk struct {
	content   string
	reasoning string
	calls     []fragment
	finish    string // the server's word, "" while it goes on
	usage     *session.Usage
	failure   *serverError
}

// fragment is a piece of a tool call. Only the first piece of a call must have
// an id and a name; in later ones they may be missing, null or empty.
type fragment struct {
	index     int // -1 where the server sent none
	id        string
	name      string
	arguments string
}

// The wire of a chunk, as far as it matters.
type (
	wireChunk struct {
		Choices []wireChoice    `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	wireChoice struct {
		Index        int       `json:"index"`
		Delta        wireDelta `json:"delta"`
		FinishReason *string   `json:"finish_reason"`
	}
	wireDelta struct {
		Content          json.RawMessage `json:"content"`
		ReasoningContent json.RawMessage `json:"reasoning_content"`
		ToolCalls        []wireCall      `json:"tool_calls"`
	}
	wireCall struct {
		Index    *int         `json:"index"`
		ID       *string      `json:"id"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name      *string         `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
)

// decode reads an event's data, the usual shape quickly.
func decode(data string) (chunk, error) {
	var c chunk
	if decodeFast(data, &c) {
		return c, nil
	}
	return decodeFull(data)
}

// decodeFull reads any chunk. It is what decodeFast must agree with.
func decodeFull(data string) (chunk, error) {
	raw := []byte(data)
	var w wireChunk
	if err := json.Unmarshal(raw, &w); err != nil {
		return chunk{}, err
	}
	var c chunk
	c.usage = readUsage(w.Usage)
	if present(w.Error) || w.Choices == nil && c.usage == nil {
		if f, ok := readServerError(raw); ok {
			c.failure = &f
			return c, nil
		}
	}
	for _, choice := range w.Choices {
		if choice.Index != 0 { // never asked for
			continue
		}
		if err := c.add(choice); err != nil {
			return chunk{}, err
		}
	}
	return c, nil
}

func (c *chunk) add(choice wireChoice) error {
	for _, part := range []struct {
		name string
		raw  json.RawMessage
		to   *string
	}{
		{"content", choice.Delta.Content, &c.content},
		{"reasoning_content", choice.Delta.ReasoningContent, &c.reasoning},
	} {
		if !present(part.raw) {
			continue
		}
		text, ok := stringOf(part.raw)
		if !ok {
			return fmt.Errorf("%s is neither a string nor null", part.name)
		}
		*part.to += text
	}
	for _, w := range choice.Delta.ToolCalls {
		f := fragment{index: -1}
		if w.Index != nil && *w.Index >= 0 {
			f.index = *w.Index
		}
		if w.ID != nil {
			f.id = *w.ID
		}
		if w.Function.Name != nil {
			f.name = *w.Function.Name
		}
		if raw := w.Function.Arguments; present(raw) {
			// Some servers send the arguments as the object itself.
			if s, ok := stringOf(raw); ok {
				f.arguments = s
			} else {
				f.arguments = string(raw)
			}
		}
		c.calls = append(c.calls, f)
	}
	if choice.FinishReason != nil {
		c.finish = stricter(c.finish, *choice.FinishReason)
	}
	return nil
}

// stricter is that of two finish reasons which lets less happen: a server that
// ends with tool_calls and then says that it ran out of length may have cut the
// calls. Of two alike the first counts.
func stricter(a, b string) string {
	rank := func(reason string) int {
		switch reason {
		case "":
			return 0
		case "stop", "tool_calls":
			return 1
		case "length":
			return 2
		}
		return 3 // an error
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// present tells a value from a missing one and from null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// stringOf reads a JSON string and keeps broken UTF-8 for the joiner.
func stringOf(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return unquote(string(raw[1 : len(raw)-1]))
}

// count is a number of tokens. Servers have been seen to send null, floats and
// strings; what is no number, or below zero, is not known.
type count struct {
	n     int64
	known bool
}

func (c *count) UnmarshalJSON(b []byte) error {
	var f float64
	if json.Unmarshal(b, &f) != nil || string(b) == "null" || f < 0 || f > 1<<53 {
		return nil // usage that cannot be read must not cost the answer
	}
	*c = count{n: int64(f), known: true}
	return nil
}

// readUsage reads a usage object, or nothing from null and from an object
// without a single count.
func readUsage(raw json.RawMessage) *session.Usage {
	if !present(raw) {
		return nil
	}
	var w struct {
		Prompt     count `json:"prompt_tokens"`
		Completion count `json:"completion_tokens"`
		Hit        count `json:"prompt_cache_hit_tokens"`
		Miss       count `json:"prompt_cache_miss_tokens"`
		PromptPart struct {
			Cached count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionPart struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	// A part of the wrong type is skipped, the rest is still read.
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &w); err != nil && !errors.As(err, &wrongType) {
		return nil
	}
	cached := w.Hit
	if !cached.known {
		cached = w.PromptPart.Cached
	}
	if !w.Prompt.known && !w.Completion.known && !cached.known && !w.Miss.known {
		return nil
	}
	input := w.Miss.n
	if !w.Miss.known {
		input = max(0, w.Prompt.n-cached.n)
	}
	return &session.Usage{
		InputTokens: input, CacheReadTokens: cached.n,
		OutputTokens: w.Completion.n, ReasoningTokens: w.CompletionPart.Reasoning.n,
	}
}
