package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// What servers may add to every request.
const (
	maxTools       = 100     // of all servers together; models take 128 with ours
	maxListed      = 1000    // that one server is listened to
	maxName        = 64      // bytes; the model's limit
	maxDescription = 2 << 10 // bytes of one description
	maxSchema      = 32 << 10
	maxTotal       = 256 << 10 // of descriptions and schemas together
)

// offer is a tool as its server lists it.
type offer struct {
	server      *server
	name        string
	description string
	schema      any
}

// offered is a tool as the model sees it.
type offered struct {
	server *server
	name   string // the server's
	spec   session.ToolSpec
}

// choose decides which offers become tools, and how. What does not is noted.
func (f *Family) choose(lists [][]offer) []offered {
	var all []offer
	for _, list := range lists {
		slices.SortStableFunc(list, func(a, b offer) int { return cmp.Compare(a.name, b.name) })
		all = append(all, slices.CompactFunc(list, func(a, b offer) bool { return a.name == b.name })...)
	}
	taken := map[string]bool{}
	var tools []offered
	over, total := map[string]int{}, 0
	for _, o := range all {
		schema, err := parameters(o.schema)
		text := f.describe(o)
		switch {
		case err != nil:
			f.env.Note(fmt.Sprintf("the tool %s of the MCP server %s is left out: %v", line(o.name, maxName), o.server.name, err))
			continue
		case len(tools) == maxTools, total+len(text)+len(schema) > maxTotal:
			over[o.server.name]++
			continue
		}
		name := callName(o.server.name, o.name)
		if taken[name] {
			name = hashedName(o.server.name, o.name)
		}
		if taken[name] {
			continue // the same name twice is the same tool
		}
		taken[name] = true
		total += len(text) + len(schema)
		tools = append(tools, offered{server: o.server, name: o.name, spec: session.ToolSpec{Name: name, Description: text, Parameters: schema}})
	}
	for _, s := range f.servers {
		if n := over[s.name]; n > 0 {
			f.env.Note(fmt.Sprintf("%d tools of the MCP server %s are left out: at most %d tools with %d KB of descriptions are offered", n, s.name, maxTools, maxTotal>>10))
		}
	}
	return tools
}

// callName is the name that the model calls a tool by.
func callName(server, name string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	full := "mcp__" + server + "__" + safe
	if len(full) > maxName || safe == "" {
		return hashedName(server, name)
	}
	return full
}

// hashedName is a name that tells tools apart whose plain names would be the same.
func hashedName(server, name string) string {
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	head := "mcp__" + server + "__"
	for _, r := range name {
		if r >= 0x80 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			r = '_'
		}
		if len(head)+1+len(tail) > maxName {
			break
		}
		head += string(r)
	}
	return head + tail
}

// describe is the description, bounded and printable.
func (f *Family) describe(o offer) string {
	text := strings.TrimSpace(tool.Printable(f.env.Key.String(o.description)))
	if text == "" {
		text = fmt.Sprintf("%s of the MCP server %s", o.name, o.server.name)
	}
	return cut(text, maxDescription)
}

// parameters is a schema in one fixed form: an object, compact, keys sorted.
func parameters(schema any) (json.RawMessage, error) {
	object, ok := schema.(map[string]any)
	if schema != nil && !ok {
		return nil, fmt.Errorf("its input schema is no object")
	}
	fixed := map[string]any{}
	for k, v := range object {
		fixed[k] = v
	}
	delete(fixed, "$schema") // which draft it is changes nothing for a model
	switch typ := fixed["type"]; typ {
	case nil:
		fixed["type"] = "object"
	case "object":
	default:
		return nil, fmt.Errorf("its input schema has the type %q, it must be object", fmt.Sprint(typ))
	}
	if fixed["properties"] == nil {
		fixed["properties"] = map[string]any{}
	}
	raw, err := session.Marshal(fixed)
	if err == nil && len(raw) > maxSchema {
		err = fmt.Errorf("its input schema has %d bytes, the limit is %d", len(raw), maxSchema)
	}
	return raw, err
}

// line is a text on one line of at most n bytes.
func line(s string, n int) string {
	return cut(strings.Join(strings.Fields(tool.Printable(s)), " "), n)
}

// cut keeps at most n bytes, whole runes only, and says that it cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
