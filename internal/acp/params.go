package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// The SDK decodes parameters by what fits: it drops a block that it does not
// know, takes one that is empty, and names no place. So they are compared with
// its types first. Members that no type has are the protocol's own room for
// more, and pass.

// unions are the SDK's types that stand for several, each with its own check.
var unions map[reflect.Type]func(path string, raw member) error

func init() { // a variable that knew them at once would depend on itself
	unions = map[reflect.Type]func(string, member) error{
		reflect.TypeFor[sdk.ContentBlock]():             checkBlock,
		reflect.TypeFor[sdk.EmbeddedResourceResource](): checkResource,
		reflect.TypeFor[sdk.McpServer]():                checkServer,
	}
}

// member is the JSON of a value within a message, which may have 64 MB: it is not
// copied, and nobody changes it.
type member []byte

// UnmarshalJSON implements json.Unmarshaler.
func (m *member) UnmarshalJSON(b []byte) error {
	*m = b
	return nil
}

// checkParams compares valid JSON with the type that it is meant for. The error
// has the path of what is wrong.
func checkParams(raw []byte, t reflect.Type) error { return checkValue("", raw, t) }

func wrong(path, format string, args ...any) error {
	if path == "" {
		path = "params"
	}
	return invalidParams(path, format, args...)
}

func checkValue(path string, raw member, t reflect.Type) error {
	raw = bytes.TrimSpace(raw)
	var want string
	switch t.Kind() {
	case reflect.Pointer:
		return checkValue(path, raw, t.Elem())
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "a boolean"
	case reflect.Int:
		want = "a number"
	case reflect.Slice:
		want = "an array"
	case reflect.Struct, reflect.Map:
		want = "an object"
	default:
		return nil // anything
	}
	if got := kindOf(raw); got != want {
		return wrong(path, "got %s, want %s", got, want)
	}
	check, union := unions[t]
	switch {
	case union:
		return check(path, raw)
	case t.Kind() == reflect.Int:
		var n int
		if json.Unmarshal(raw, &n) != nil {
			return wrong(path, "must be a whole number, written without a point, is %s", clip(string(raw)))
		}
	case t.Kind() == reflect.Slice:
		var items []member
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
		for i, item := range items {
			if err := checkValue(fmt.Sprintf("%s[%d]", path, i), item, t.Elem()); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Struct:
		members, err := membersOf(raw)
		if err != nil {
			return err
		}
		return checkObject(path, members, t)
	}
	return nil
}

// checkObject compares the members that a struct has.
func checkObject(path string, members map[string]member, t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		value, ok := members[name]
		optional := options == "omitempty"
		switch {
		case !ok && !optional:
			return wrong(join(path, name), "is missing")
		case !ok, optional && string(value) == "null":
			continue
		}
		if err := checkValue(join(path, name), value, f.Type); err != nil {
			return err
		}
	}
	return nil
}

func membersOf(raw member) (members map[string]member, err error) {
	err = json.Unmarshal(raw, &members)
	return members, err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// typeOf is the member that tells which type of a union it is, "" if there is none.
func typeOf(path string, members map[string]member) (name string, err error) {
	if members["type"] == nil {
		return "", nil
	}
	if got := kindOf(members["type"]); got != "a string" {
		return "", wrong(join(path, "type"), "got %s, want a string", got)
	}
	err = json.Unmarshal(members["type"], &name)
	return name, err
}

// taggedMembers are the members of an object that says by its type what it is.
func taggedMembers(path string, raw member) (members map[string]member, name string, err error) {
	if members, err = membersOf(raw); err != nil {
		return nil, "", err
	}
	name, err = typeOf(path, members)
	return members, name, err
}

// blocks are the parts of a prompt that are taken.
var blocks = map[string]reflect.Type{
	"text":          reflect.TypeFor[sdk.ContentBlockText](),
	"resource_link": reflect.TypeFor[sdk.ContentBlockResourceLink](),
	"resource":      reflect.TypeFor[sdk.ContentBlockResource](),
}

func checkBlock(path string, raw member) error {
	members, name, err := taggedMembers(path, raw)
	if err != nil {
		return err
	}
	t, ok := blocks[name]
	switch {
	case name == "":
		return wrong(join(path, "type"), "is missing")
	case !ok:
		return wrong(join(path, "type"), "%q is not taken; text, resource_link and resource are", clip(name))
	}
	err = checkObject(path, members, t)
	if err == nil && name == "resource_link" {
		err = notEmpty(path, members, "uri")
	}
	return err
}

func checkResource(path string, raw member) error {
	members, err := membersOf(raw)
	if err != nil {
		return err
	}
	if members["text"] == nil && members["blob"] != nil {
		return wrong(join(path, "blob"), "is not taken; text is")
	}
	if err := checkObject(path, members, reflect.TypeFor[sdk.TextResourceContents]()); err != nil {
		return err
	}
	return notEmpty(path, members, "uri")
}

func notEmpty(path string, members map[string]member, name string) error {
	if string(members[name]) == `""` {
		return wrong(join(path, name), "is empty")
	}
	return nil
}

// transports are the ways to reach an MCP server that are known. Another is left
// to whoever looks at servers, who leaves it out.
var transports = map[string]reflect.Type{
	"":     reflect.TypeFor[sdk.McpServerStdio](),
	"http": reflect.TypeFor[sdk.McpServerHttpInline](),
	"sse":  reflect.TypeFor[sdk.McpServerSseInline](),
}

func checkServer(path string, raw member) error {
	members, name, err := taggedMembers(path, raw)
	if err != nil {
		return err
	}
	t, ok := transports[name]
	if !ok {
		return nil
	}
	return checkObject(path, members, t)
}

// kindOf names the kind of a value.
func kindOf(raw member) string {
	kinds := map[byte]string{'{': "an object", '[': "an array", '"': "a string", 't': "a boolean", 'f': "a boolean", 'n': "null"}
	if len(raw) == 0 {
		return "nothing"
	}
	if k, ok := kinds[raw[0]]; ok {
		return k
	}
	return "a number"
}
