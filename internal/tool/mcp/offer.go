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
	maxNoted       = 10      // tools of one server that are left out, each with a line of its own
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

// choose decides which offers become tools, and how. What does not is noted. Where
// there is no room for all, the servers take turns, so that none takes the place of
// the others; the order of the tools stays that of the servers and of the names.
func (f *Family) choose(lists [][]offer) []offered {
	fit := make([][]offered, len(lists))
	for i, list := range lists {
		fit[i] = f.sift(list)
	}
	chosen, over := make([][]offered, len(lists)), make([][]string, len(lists))
	count, total := 0, 0
	for turn, more := 0, true; more; turn++ {
		more = false
		for i, list := range fit {
			if turn >= len(list) {
				continue
			}
			more = true
			o := list[turn]
			size := len(o.spec.Description) + len(o.spec.Parameters)
			if count == maxTools || total+size > maxTotal {
				over[i] = append(over[i], o.name)
				continue
			}
			count, total = count+1, total+size
			chosen[i] = append(chosen[i], o)
		}
	}
	for i, names := range over {
		if len(names) > 0 {
			f.env.Note(fmt.Sprintf("%d tools of the MCP server %s are left out: at most %d tools with %d KB of descriptions are offered. They are %s",
				len(names), fit[i][0].server.name, maxTools, maxTotal>>10, line(strings.Join(names, ", "), 300)))
		}
	}
	return slices.Concat(chosen...)
}

// sift makes tools of what one server lists, by name, and notes what cannot be one.
func (f *Family) sift(list []offer) []offered {
	slices.SortStableFunc(list, func(a, b offer) int { return cmp.Compare(a.name, b.name) })
	taken := map[string]bool{}
	var tools []offered
	left := 0
	leave := func(o offer, format string, args ...any) {
		if left++; left > maxNoted {
			return
		}
		f.env.Note(fmt.Sprintf("the tool %s of the MCP server %s is left out: ", cmp.Or(line(o.name, maxName), "without a name"), o.server.name) + fmt.Sprintf(format, args...))
	}
	for i, o := range list {
		schema, err := parameters(o.schema)
		switch {
		case strings.TrimSpace(o.name) == "":
			leave(o, "it has no name, or is not understood")
			continue
		case i > 0 && list[i-1].name == o.name:
			if i == 1 || list[i-2].name != o.name {
				leave(o, "the name is listed more than once, the first one is offered")
			}
			continue
		case err != nil:
			leave(o, "%v", err)
			continue
		}
		name := callName(o.server.name, o.name)
		if taken[name] {
			name = hashedName(o.server.name, o.name)
		}
		if taken[name] {
			leave(o, "its name cannot be told from another one's")
			continue
		}
		taken[name] = true
		tools = append(tools, offered{server: o.server, name: o.name, spec: session.ToolSpec{Name: name, Description: f.describe(o), Parameters: schema}})
	}
	if left > maxNoted {
		f.env.Note(fmt.Sprintf("%d more tools of the MCP server %s are left out", left-maxNoted, list[0].server.name))
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

// line is a text on one line of at most n bytes, without anything that steers a
// terminal: it is a server's, and people read it there.
func line(s string, n int) string {
	return cut(tool.Name(strings.Join(strings.Fields(s), " ")), n)
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
