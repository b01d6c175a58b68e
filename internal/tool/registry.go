package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"deepseek/internal/session"
)

// Registry is the ordered list of tools that an agent offers. It never changes
// after it was made and is safe for concurrent use; another set of tools is
// another registry.
type Registry struct {
	order  []*entry
	byName map[string]*entry
}

type entry struct {
	tool Tool
	name string
	schema
}

// NewRegistry keeps the tools in the order given, which is the order the model
// sees. Two tools of one name are an error.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]*entry, len(tools))}
	for _, t := range tools {
		spec := t.Spec()
		if r.byName[spec.Name] != nil {
			return nil, fmt.Errorf("two tools are called %q", spec.Name)
		}
		r.add(&entry{tool: t, name: spec.Name, schema: schema{source: spec.Parameters}})
	}
	return r, nil
}

func (r *Registry) add(e *entry) {
	r.order = append(r.order, e)
	r.byName[e.name] = e
}

// Select is the registry of those tools that keep wants, in the same order.
// Schemas that were compiled stay so.
func (r *Registry) Select(keep func(Tool) bool) *Registry {
	s := &Registry{byName: make(map[string]*entry, len(r.order))}
	for _, e := range r.order {
		if keep(e.tool) {
			s.add(e)
		}
	}
	return s
}

// Specs are the tools as the model is told about them, in a fixed order.
func (r *Registry) Specs() []session.ToolSpec {
	specs := make([]session.ToolSpec, len(r.order))
	for i, e := range r.order {
		specs[i] = e.tool.Spec()
	}
	return specs
}

// Names are the tools' names in their order.
func (r *Registry) Names() []string {
	names := make([]string, len(r.order))
	for i, e := range r.order {
		names[i] = e.name
	}
	return names
}

// Lookup finds a tool by its exact name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	e := r.byName[name]
	if e == nil {
		return nil, false
	}
	return e.tool, true
}

// Check decides whether a call can run. It returns the tool and its arguments,
// or a result that tells the model everything that is wrong with the call.
// No arguments at all count as an empty object.
func (r *Registry) Check(name, rawArgs string) (Tool, json.RawMessage, *Result) {
	e := r.byName[name]
	if e == nil {
		res := Errorf(CodeUnknownTool, "there is no tool %q; the tools are %s", Brief(name), strings.Join(r.Names(), ", "))
		return nil, nil, &res
	}
	if strings.TrimSpace(rawArgs) == "" {
		rawArgs = "{}"
	}
	args := json.RawMessage(rawArgs)
	problems := wellFormed(rawArgs)
	if problems == nil {
		problems = e.check(args)
	}
	if problems != nil {
		res := Errorf(CodeInvalidArguments, "%s: %s", name, strings.Join(problems, "; "))
		return e.tool, nil, &res
	}
	return e.tool, args, nil
}

// Compile compiles every schema and holds those of tools made by Define against
// the Go type of their arguments. It is for tests and for judging what a server
// offers. The error names the first tool whose schema is no good.
func (r *Registry) Compile() error {
	for _, e := range r.order {
		root, err := e.compiled()
		if t, ok := e.tool.(interface{ argsType() reflect.Type }); ok && err == nil {
			err = agrees(root.schema, t.argsType())
		}
		if err != nil {
			return fmt.Errorf("schema of %s: %w", e.name, err)
		}
	}
	return nil
}

// agrees tells where a schema and the Go type that takes its values differ in
// names or types.
func agrees(s *jsonschema.Schema, typ reflect.Type) error {
	if typ == reflect.TypeFor[json.RawMessage]() {
		return nil // the tool reads its arguments itself
	}
	inferred, err := jsonschema.ForType(typ, nil)
	if err != nil {
		return err
	}
	return alike("arguments", s, inferred)
}

func alike(at string, s, inferred *jsonschema.Schema) error {
	types := slices.DeleteFunc(append([]string{inferred.Type}, inferred.Types...), func(t string) bool { return t == "" || t == "null" })
	if len(types) > 0 && s.Type != types[0] {
		return fmt.Errorf("%s: type %q, in Go it is %q", at, s.Type, types[0])
	}
	for name := range inferred.Properties {
		if s.Properties[name] == nil {
			return fmt.Errorf("%s: Go has %s, the schema not", at, name)
		}
	}
	for name, p := range s.Properties {
		if inferred.Properties[name] == nil {
			return fmt.Errorf("%s: the schema has %s, Go not", at, name)
		}
		if err := alike(at+"."+name, p, inferred.Properties[name]); err != nil {
			return err
		}
	}
	if s.Items != nil && inferred.Items != nil {
		return alike(at+"[]", s.Items, inferred.Items)
	}
	return nil
}
