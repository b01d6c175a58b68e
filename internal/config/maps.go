package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/model"
)

// Server is an MCP server: a command that is started, or an address.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string // added to the environment; case is kept
	Cwd     string
	URL     string
	Headers map[string]string
	Trust   bool // its tools run without approval

	StartTimeout time.Duration // for coming up and listing its tools; 0 = not set
	CallTimeout  time.Duration // for one call; 0 = not set
}

// each calls fn for the pairs of a mapping. what names the mapping in errors.
func (r reader) each(what string, n *yaml.Node, fn func(key, val *yaml.Node) *Error) *Error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return r.errorAt(n.Line, what, "wants a map, not %s", describe(n))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if line, twice := seen[key.Value]; twice {
			return r.errorAt(key.Line, what+"."+key.Value, "stands already on line %d", line)
		}
		seen[key.Value] = key.Line
		if bad := fn(key, resolve(n.Content[i+1])); bad != nil {
			return bad
		}
	}
	return nil
}

func (r reader) unknown(what string, key *yaml.Node, known []string) *Error {
	hint := ""
	if near := Nearest(key.Value, known); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return r.errorAt(key.Line, what+"."+key.Value, "unknown key%s", hint)
}

func (r reader) text(what string, n *yaml.Node) (string, *Error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		return "", r.errorAt(n.Line, what, "wants text, not %s", describe(n))
	}
	return n.Value, nil
}

func (r reader) texts(what string, n *yaml.Node) ([]string, *Error) {
	if n.Kind != yaml.SequenceNode {
		return nil, r.errorAt(n.Line, what, "wants a list, not %s", describe(n))
	}
	out := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.ShortTag() == "!!null" {
			return nil, r.errorAt(item.Line, what, "wants a list of texts, not of %s", describe(item))
		}
		out = append(out, item.Value)
	}
	return out, nil
}

// paths wants paths that mean the same wherever the program is started.
func (r reader) paths(what string, n *yaml.Node) ([]string, *Error) {
	list, bad := r.texts(what, n)
	for _, p := range list {
		if !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~/") {
			return nil, r.errorAt(n.Line, what, "%q is neither absolute nor begins with ~/", p)
		}
	}
	return list, bad
}

func (r reader) textMap(what string, n *yaml.Node) (map[string]string, *Error) {
	out := map[string]string{}
	bad := r.each(what, n, func(key, val *yaml.Node) *Error {
		if val.Kind != yaml.ScalarNode || val.ShortTag() == "!!null" {
			return r.errorAt(key.Line, what+"."+key.Value, "wants text, not %s", describe(val))
		}
		out[key.Value] = val.Value
		return nil
	})
	return out, bad
}

func (r reader) prices(what string, n *yaml.Node) (map[string]model.Price, *Error) {
	out := map[string]model.Price{}
	bad := r.each(what, n, func(of, val *yaml.Node) *Error {
		var p model.Price
		name := what + "." + of.Value
		fields := map[string]*float64{"input": &p.Input, "cached": &p.Cached, "output": &p.Output}
		given := 0
		bad := r.each(name, val, func(key, val *yaml.Node) *Error {
			to := fields[key.Value]
			if to == nil {
				return r.unknown(name, key, []string{"input", "cached", "output"})
			}
			f, err := strconv.ParseFloat(val.Value, 64)
			if val.Kind != yaml.ScalarNode || !fits(Number, val.ShortTag()) || err != nil || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
				return r.errorAt(key.Line, name+"."+key.Value, "wants dollars for a million tokens, a number from 0")
			}
			*to = f
			given++
			return nil
		})
		if bad == nil && given < len(fields) {
			bad = r.errorAt(of.Line, name, "wants all of input, cached and output")
		}
		out[of.Value] = p
		return bad
	})
	return out, bad
}

func (r reader) servers(what string, n *yaml.Node) (map[string]Server, *Error) {
	out := map[string]Server{}
	bad := r.each(what, n, func(name, val *yaml.Node) *Error {
		if !serverName(name.Value) {
			return r.errorAt(name.Line, what+"."+name.Value, "a server's name is made of 1 to 32 letters, digits, - and single _")
		}
		s, bad := r.server(what+"."+name.Value, name.Value, val)
		if bad == nil && (s.Command == "") == (s.URL == "") {
			bad = r.errorAt(name.Line, what+"."+name.Value, "wants either command or url")
		}
		out[name.Value] = s
		return bad
	})
	return out, bad
}

func (r reader) server(what, name string, n *yaml.Node) (Server, *Error) {
	s := Server{Name: name}
	bad := r.each(what, n, func(key, val *yaml.Node) (bad *Error) {
		at := what + "." + key.Value
		switch key.Value {
		case "command":
			s.Command, bad = r.text(at, val)
		case "args":
			s.Args, bad = r.texts(at, val)
		case "env":
			s.Env, bad = r.textMap(at, val)
		case "cwd":
			s.Cwd, bad = r.text(at, val)
		case "url":
			if s.URL, bad = r.text(at, val); bad == nil {
				if err := serverAddress(s.URL); err != nil {
					bad = r.errorAt(key.Line, at, "%s", err)
				}
			}
		case "headers":
			s.Headers, bad = r.textMap(at, val)
		case "trust":
			if val.Kind != yaml.ScalarNode || val.ShortTag() != "!!bool" {
				return r.errorAt(key.Line, at, "wants true or false, not %s", describe(val))
			}
			s.Trust = spelled(val) == "true"
		case "start_timeout":
			s.StartTimeout, bad = r.duration(at, val)
		case "call_timeout":
			s.CallTimeout, bad = r.duration(at, val)
		default:
			bad = r.unknown(what, key, []string{"command", "args", "env", "cwd", "url", "headers", "trust", "start_timeout", "call_timeout"})
		}
		return bad
	})
	return s, bad
}

// duration wants one above zero.
func (r reader) duration(what string, n *yaml.Node) (time.Duration, *Error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return 0, r.errorAt(n.Line, what, "wants %s, not %s", Duration, describe(n))
	}
	v, err := Setting{Kind: Duration, check: positive}.parse(n.Value)
	if err != nil {
		return 0, r.errorAt(n.Line, what, "%s", err)
	}
	return v.(time.Duration), nil
}

// serverName keeps mcp__SERVER__TOOL readable in one way only.
func serverName(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
		single := c == '_' && i > 0 && i+1 < len(s) && s[i-1] != '_'
		if !letter && !single {
			return false
		}
	}
	return true
}

func serverAddress(s string) error {
	_, err := model.ParseAddress(s)
	return err
}
