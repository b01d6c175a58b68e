package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema checks arguments. It compiles on the first check and is safe for
// concurrent use.
type schema struct {
	source json.RawMessage
	once   sync.Once
	root   *node
	err    error
}

// node is one schema of the tree. The library stops at its first error, which
// would cost a model a turn per mistake. So the tree is walked here: the
// keywords that models get wrong are judged in words of our own, all others by
// the library, node by node.
type node struct {
	schema     *jsonschema.Schema
	types      []string
	rest       *jsonschema.Resolved // the node's keywords that walk does not judge
	properties map[string]*node
	items      *node
}

func (s *schema) compiled() (*node, error) {
	s.once.Do(func() {
		var root jsonschema.Schema
		if s.err = json.Unmarshal(s.source, &root); s.err != nil {
			return
		}
		switch root.Schema {
		case "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema":
		default:
			root.Schema = "" // read an older or unknown dialect as the present one
		}
		s.root, s.err = compile(&root, !refers(s.source))
	})
	return s.root, s.err
}

var jsonTypes = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

// refers tells whether schemas may point at others. Such a tree cannot be taken
// apart and is judged by the library as a whole.
func refers(source []byte) bool {
	for _, word := range []string{`"$ref"`, `"$dynamicRef"`, `"$id"`, `"$anchor"`} {
		if bytes.Contains(source, []byte(word)) {
			return true
		}
	}
	return false
}

// compile makes the node of s; deep says whether its children are judged apart.
// No loader is set, so a schema from outside cannot make this program open a
// file or an address.
func compile(s *jsonschema.Schema, deep bool) (*node, error) {
	n := &node{schema: s, types: s.Types}
	if s.Type != "" {
		n.types = []string{s.Type}
	}
	for _, typ := range n.types {
		if !slices.Contains(jsonTypes, typ) {
			return nil, fmt.Errorf("there is no type %q", typ)
		}
	}
	rest := *s
	if deep {
		n.properties = make(map[string]*node, len(s.Properties))
		rest.Properties = make(map[string]*jsonschema.Schema, len(s.Properties))
		for name, p := range s.Properties {
			rest.Properties[name] = &jsonschema.Schema{}
			var err error
			if n.properties[name], err = compile(p, true); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if s.Items != nil && s.PrefixItems == nil {
			rest.Items = &jsonschema.Schema{}
			var err error
			if n.items, err = compile(s.Items, true); err != nil {
				return nil, fmt.Errorf("items: %w", err)
			}
		}
	}
	rest.Type, rest.Types, rest.Enum, rest.Required = "", nil, nil, nil
	rest.Minimum, rest.Maximum, rest.MinLength, rest.MaxLength, rest.MinItems, rest.MaxItems = nil, nil, nil, nil, nil, nil
	if closed(s) {
		rest.AdditionalProperties = nil
	}
	var err error
	n.rest, err = rest.Resolve(nil)
	return n, err
}

// closed tells whether the object may have no other properties than the named ones.
func closed(s *jsonschema.Schema) bool {
	a := s.AdditionalProperties
	return a != nil && a.Not != nil && len(s.PatternProperties) == 0
}

// check lists all that is wrong with the arguments, nil if they fit. A schema
// that does not compile, which only a tool from outside can have, checks
// nothing: whoever runs the tool checks too.
func (s *schema) check(args json.RawMessage) []string {
	root, err := s.compiled()
	if err != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return []string{"the arguments are not JSON: " + err.Error()}
	}
	var f findings
	f.walk(root, "", value)
	if len(f.list) > maxFindings {
		left := len(f.list) - maxFindings
		f.list = append(f.list[:maxFindings], fmt.Sprintf("… %d more", left))
	}
	return f.list
}

const maxFindings = 20

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
