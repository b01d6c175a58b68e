package fakellm

import (
	"encoding/json"
	"fmt"
)

// Event is a data line of a stream, as Raw wants it.
func Event(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a test's own value
	}
	return "data: " + string(raw) + "\n\n"
}

// Done ends a stream.
const Done = "data: [DONE]\n\n"

type object = map[string]any

// Delta is the event of one chunk, with a finish reason if there is one.
func Delta(delta object, finish string) string {
	return Event(chunkOf("r", delta, finish))
}

func chunkOf(id string, delta object, finish string) object {
	var reason any
	if finish != "" {
		reason = finish
	}
	return object{
		"id": id, "object": "chat.completion.chunk", "created": 1, "model": "fake",
		"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}},
	}
}

const defaultChunk = 12

// pieces are the bytes of the body, in the pieces in which they are sent. The
// step's calls have ids.
func (s Step) pieces(n int) []string {
	if s.Raw != nil {
		return s.Raw
	}
	size := s.Chunk
	if size <= 0 {
		size = defaultChunk
	}
	id := fmt.Sprintf("chat-%d", n)
	var out []string
	say := func(delta object) { out = append(out, Event(chunkOf(id, delta, ""))) }
	say(object{"role": "assistant", "content": ""})
	for _, part := range split(s.Reasoning, size) {
		say(object{"reasoning_content": part})
	}
	for _, part := range split(s.Text, size) {
		say(object{"content": part})
	}
	for k, c := range s.Calls {
		say(object{"tool_calls": []object{{
			"index": k, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""},
		}}})
		for _, part := range split(string(c.Arguments), size) {
			say(object{"tool_calls": []object{{"index": k, "function": object{"arguments": part}}}})
		}
	}
	finish := s.Finish
	if finish == "" {
		finish = "stop"
		if len(s.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	last := chunkOf(id, object{"content": ""}, finish)
	if !s.NoUsage {
		u := s.Usage
		if u == nil {
			u = &Usage{Prompt: 100 + n, Cached: 64, Completion: 20}
		}
		last["usage"] = object{
			"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"prompt_cache_hit_tokens": u.Cached, "prompt_cache_miss_tokens": u.Prompt - u.Cached,
			"prompt_tokens_details":     object{"cached_tokens": u.Cached},
			"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}
	}
	out = append(out, Event(last))
	if !s.NoDone {
		out = append(out, Done)
	}
	return out
}

// split cuts text into pieces of about size bytes, at runes: a piece goes
// through JSON, which has no halves of them.
func split(text string, size int) []string {
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
