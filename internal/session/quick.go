package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// quick decodes the payloads that a long log is full of, several times as fast
// as encoding/json: a resume reads them all. It knows them just as they are
// written, keys in the order of the types. What it takes, encoding/json takes
// for the same; it reports false for everything else, valid or not, and has
// then left into as it was.
func quick(data []byte, into any) bool {
	r := reader{rest: data}
	switch into := into.(type) {
	case *ToolResult:
		v := ToolResult{}
		if r.toolResult(&v) {
			*into = v
			return true
		}
	case *AssistantMessage:
		v := AssistantMessage{}
		if r.assistantMessage(&v) {
			*into = v
			return true
		}
	case *ToolCall:
		v := ToolCall{}
		if r.toolCall(&v) {
			*into = v
			return true
		}
	case *StepMark:
		v := StepMark{}
		if r.lit(`{"turn":`) && r.int(&v.Turn) && r.lit(`,"step":`) && r.int(&v.Step) && r.end() {
			*into = v
			return true
		}
	}
	return false
}

func (r *reader) toolCall(v *ToolCall) bool {
	return r.lit(`{"turn":`) && r.int(&v.Turn) && r.lit(`,"step":`) && r.int(&v.Step) &&
		r.lit(`,"callId":`) && r.str(&v.CallID) && r.lit(`,"name":`) && r.str(&v.Name) &&
		r.lit(`,"arguments":`) && r.str(&v.Arguments) && r.end()
}

func (r *reader) toolResult(v *ToolResult) bool {
	m := &v.Message
	return r.lit(`{"turn":`) && r.int(&v.Turn) && r.lit(`,"step":`) && r.int(&v.Step) &&
		r.lit(`,"message":{"id":`) && r.str(&m.ID) && r.lit(`,"role":`) && r.str(&m.Role) &&
		r.lit(`,"toolCallId":`) && r.str(&m.ToolCallID) && r.lit(`,"content":`) && r.str(&m.Content) &&
		r.lit(`,"isError":`) && r.bool(&m.IsError) && r.lit(`}`) && r.others(v)
}

func (r *reader) assistantMessage(v *AssistantMessage) bool {
	m := &v.Message
	return r.lit(`{"turn":`) && r.int(&v.Turn) && r.lit(`,"step":`) && r.int(&v.Step) &&
		r.lit(`,"message":{"id":`) && r.str(&m.ID) && r.lit(`,"role":`) && r.str(&m.Role) &&
		r.lit(`,"content":[`) && r.blocks(&m.Content) &&
		r.lit(`,"source":{"kind":`) && r.str(&m.Source.Kind) &&
		(!r.lit(`,"provider":`) || r.str(&m.Source.Provider)) && (!r.lit(`,"model":`) || r.str(&m.Source.Model)) &&
		r.lit(`}}`) && r.others(v)
}

func (r *reader) blocks(to *[]Block) bool {
	*to = []Block{}
	for !r.lit(`]`) {
		if len(*to) > 0 && !r.lit(`,`) {
			return false
		}
		var b Block
		if !r.lit(`{"type":`) || !r.str(&b.Type) {
			return false
		}
		switch b.Type {
		case BlockText, BlockReasoning:
			if !r.lit(`,"text":`) || !r.str(&b.Text) {
				return false
			}
		case BlockToolCall:
			if !r.lit(`,"id":`) || !r.str(&b.ID) || !r.lit(`,"name":`) || !r.str(&b.Name) || !r.lit(`,"arguments":`) || !r.str(&b.Arguments) {
				return false
			}
		default:
			return false
		}
		if !r.lit(`}`) {
			return false
		}
		*to = append(*to, b)
	}
	return true
}

// quickTimed is what Questions.header reads, of a header as it is written. It
// steps over what other tools are told, which is most of it. Of data that is not
// valid JSON it may read anything, but ends.
func quickTimed(data []byte) (timed, ok bool) {
	r := reader{rest: data}
	if !r.lit(`{"header":{"config":`) || !r.skip() || r.lit(`,"system":`) && !r.skip() || !r.lit(`,"tools":[`) {
		return false, false
	}
	for n := 0; !r.lit(`]`); n++ {
		var name string
		if n > 0 && !r.lit(`,`) || !r.lit(`{"name":`) || !r.str(&name) || !r.lit(`,"description":`) || !r.skip() || !r.lit(`,"parameters":`) {
			return false, false
		}
		schema := r.rest
		if !r.skip() || !r.lit(`}`) {
			return false, false
		}
		if name != AskTool {
			continue
		}
		var v struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(schema[:len(schema)-len(r.rest)-1], &v) != nil {
			return false, false
		}
		_, timed = v.Properties["timeout"]
	}
	return timed, r.lit(`},"reason":`) && r.skip() && r.end()
}

// skip consumes one value of what is valid JSON.
func (r *reader) skip() bool {
	depth := 0
	for i := 0; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '"':
			end := quote(r.rest[i+1:])
			if end < 0 {
				return false
			}
			i += 1 + end
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			continue
		}
		if depth == 0 && i < len(r.rest) {
			r.rest = r.rest[i+1:]
			return true
		}
		if depth < 0 {
			return false
		}
	}
	return false // a number or a word, or the end
}

// quote is where a string ends that text begins within: at the first quote with
// an even number of backslashes before it. -1 if there is none.
func quote(text []byte) int {
	for end := 0; ; end++ {
		i := bytes.IndexByte(text[end:], '"')
		if i < 0 {
			return -1
		}
		end += i
		slashes := 0
		for slashes < end && text[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
	}
}

// reader walks over JSON text. Its methods consume what they are for; where
// that is not what comes next, they report false.
type reader struct{ rest []byte }

func (r *reader) lit(text string) bool {
	if len(r.rest) < len(text) || string(r.rest[:len(text)]) != text {
		return false
	}
	r.rest = r.rest[len(text):]
	return true
}

// end consumes the end of the object, behind which nothing may follow.
func (r *reader) end() bool { return r.lit(`}`) && len(r.rest) == 0 }

// others leaves the rarer members at the end of the object to encoding/json.
func (r *reader) others(v any) bool {
	if !r.lit(`,`) {
		return r.end()
	}
	if len(r.rest) == 0 || r.rest[0] != '"' {
		return false // {} is an object, {…,} is none
	}
	return json.Unmarshal(append([]byte(`{`), r.rest...), v) == nil
}

// int consumes a whole number of at most nine digits.
func (r *reader) int(to *int) bool {
	n, i := 0, 0
	for ; i < len(r.rest) && i < 10 && r.rest[i] >= '0' && r.rest[i] <= '9'; i++ {
		n = n*10 + int(r.rest[i]-'0')
	}
	if i == 0 || i > 9 || i > 1 && r.rest[0] == '0' {
		return false
	}
	r.rest, *to = r.rest[i:], n
	return true
}

func (r *reader) bool(to *bool) bool {
	*to = r.lit(`true`)
	return *to || r.lit(`false`)
}

// str consumes a string.
func (r *reader) str(to *string) bool {
	if !r.lit(`"`) {
		return false
	}
	end := bytes.IndexByte(r.rest, '"')
	if end < 0 {
		return false
	}
	if bytes.IndexByte(r.rest[:end], '\\') >= 0 {
		return r.escaped(to)
	}
	raw := r.rest[:end]
	r.rest = r.rest[end+1:]
	*to = string(raw)
	return unescaped(raw)
}

// unescaped tells whether raw may stand in a string as it is.
func unescaped(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(raw)
}

// escapes are what the letters behind a backslash mean; 0 = they are not for str.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped consumes a string, without its first quote, that has escapes.
func (r *reader) escaped(to *string) bool {
	end := quote(r.rest)
	if end < 0 {
		return false
	}
	raw := r.rest[:end]
	r.rest = r.rest[end+1:]
	if !unescaped(raw) {
		return false
	}
	var s strings.Builder
	s.Grow(len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			s.Write(raw)
			*to = s.String()
			return true
		}
		c := escapes[raw[i+1]] // an even number of backslashes: another byte is there
		if c == 0 {
			return false // \u, or nothing that JSON knows
		}
		s.Write(raw[:i])
		s.WriteByte(c)
		raw = raw[i+2:]
	}
}
