package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// maxDelay bounds delay_ms; a longer one is a slip of the keyboard.
const maxDelay = 24 * time.Hour

// Load reads a script. An error names the file and, where it can, the line and
// the key that was probably meant. Nothing else is touched.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the script cannot be read: %w", err)
	}
	root, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := reader{path: path}
	s := &Script{path: path}
	found := false
	r.object(root, "the script", map[string]func(*yaml.Node){
		"responses": func(n *yaml.Node) {
			found = true
			r.list(n, "responses", func(n *yaml.Node) { s.responses = append(s.responses, r.response(n)) })
		},
	})
	if r.err == nil && !found {
		r.fail(root, "responses is missing")
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// parse reads JSON or YAML into nodes that know their lines.
func parse(data []byte) (*yaml.Node, error) {
	if json.Valid(data) {
		return parseJSON(data)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		// "yaml: line 3: did not find expected key"
		return nil, fmt.Errorf("not readable as YAML or JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}, nil
	}
	return doc.Content[0], nil
}

// reader walks over nodes and keeps the first error; after it nothing counts.
type reader struct {
	path  string
	err   error
	nodes int // of arguments, so far
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s", r.path, n.Line, fmt.Sprintf(format, args...))
	}
}

func (r *reader) response(n *yaml.Node) response {
	var out response
	r.object(n, "a response", map[string]func(*yaml.Node){
		"text":      func(n *yaml.Node) { out.text = r.text(n, "text") },
		"reasoning": func(n *yaml.Node) { out.reasoning = r.text(n, "reasoning") },
		"finish":    func(n *yaml.Node) { out.finish = r.text(n, "finish") },
		"delay_ms": func(n *yaml.Node) {
			out.delay = time.Duration(r.number(n, "delay_ms", int64(maxDelay/time.Millisecond))) * time.Millisecond
		},
		"tool_calls": func(n *yaml.Node) {
			r.list(n, "tool_calls", func(n *yaml.Node) { out.calls = append(out.calls, r.call(n)) })
		},
		"usage": func(n *yaml.Node) {
			var u session.Usage
			count := func(key string, to *int64) func(*yaml.Node) {
				return func(n *yaml.Node) { *to = r.number(n, key, 1<<53) }
			}
			r.object(n, "usage", map[string]func(*yaml.Node){
				"input": count("input", &u.InputTokens), "cached": count("cached", &u.CacheReadTokens), "output": count("output", &u.OutputTokens),
			})
			out.usage = &u
		},
		"error": func(n *yaml.Node) {
			e := &model.Error{}
			r.object(n, "error", map[string]func(*yaml.Node){
				"code":    func(n *yaml.Node) { e.Code = r.text(n, "code") },
				"message": func(n *yaml.Node) { e.Message = r.text(n, "message") },
			})
			if e.Code == "" {
				r.fail(n, "an error needs a code")
			}
			out.failure = e
		},
	})
	return out
}

func (r *reader) call(n *yaml.Node) session.Call {
	out := session.Call{Arguments: "{}"}
	r.object(n, "a tool call", map[string]func(*yaml.Node){
		"id":   func(n *yaml.Node) { out.ID = r.text(n, "id") },
		"name": func(n *yaml.Node) { out.Name = r.text(n, "name") },
		"arguments": func(n *yaml.Node) {
			if n = resolve(n); n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
				out.Arguments = n.Value // as it is: a script may play a broken model
				return
			}
			if n.Kind != yaml.MappingNode {
				r.fail(n, "arguments must be a mapping, or a string that holds the raw JSON")
				return
			}
			var b bytes.Buffer
			r.json(&b, n, 0)
			out.Arguments = b.String()
		},
	})
	if out.Name == "" {
		r.fail(n, "a tool call needs a name")
	}
	return out
}

// object calls the member of each key that a mapping has.
func (r *reader) object(n *yaml.Node, what string, members map[string]func(*yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		key := n.Content[i]
		member, ok := members[key.Value]
		switch {
		case !ok:
			r.fail(key, "%s has no key %q%s", what, key.Value, nearest(key.Value, members))
		case seen[key.Value]:
			r.fail(key, "%s has the key %q twice", what, key.Value)
		default:
			seen[key.Value] = true
			member(n.Content[i+1])
		}
	}
}

func (r *reader) list(n *yaml.Node, what string, item func(*yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s must be a list", what)
		return
	}
	for _, c := range n.Content {
		if r.err == nil {
			item(c)
		}
	}
}

func (r *reader) text(n *yaml.Node, key string) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.fail(n, "%s must be a string; put quotes around it", key)
		return ""
	}
	if !utf8.ValidString(n.Value) {
		r.fail(n, "%s is not UTF-8", key)
	}
	return n.Value
}

func (r *reader) number(n *yaml.Node, key string, limit int64) int64 {
	n = resolve(n)
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < 0 || v > limit {
		r.fail(n, "%s must be a whole number from 0 to %d", key, limit)
		return 0
	}
	return v
}

// resolve follows aliases. The parser refuses those that lead to themselves
// only later, so the steps are bounded.
func resolve(n *yaml.Node) *yaml.Node {
	for range 100 {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}
