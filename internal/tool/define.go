package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"deepseek/internal/session"
)

// Definition is a tool in its parts. Text and Schema come from files beside the
// tool; nothing is done with them before the first use, so that a program that
// offers no tools pays nothing.
type Definition struct {
	Name   string
	Text   string // what the model reads: when and how to use it
	Schema string // a JSON schema of an object; may be laid out for reading
	Traits Traits
}

// Define makes a tool of a function whose arguments are the fields of In. The
// schema is the contract with the model, In its Go half: Registry.Compile, which tests
// call, holds both together.
func Define[In any](d Definition, run func(ctx context.Context, call Call, in In) Result) Tool {
	return &defined[In]{def: d, run: run, spec: sync.OnceValue(d.spec)}
}

func (d Definition) spec() session.ToolSpec {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(d.Schema)); err != nil {
		// A schema that is no JSON is told apart by Registry.Compile, which
		// tests call; an object without rules keeps the request well-formed.
		compact.Reset()
		compact.WriteString(`{"type":"object"}`)
	}
	return session.ToolSpec{Name: d.Name, Description: strings.TrimSpace(d.Text), Parameters: compact.Bytes()}
}

type defined[In any] struct {
	def  Definition
	run  func(context.Context, Call, In) Result
	spec func() session.ToolSpec
}

// argsType is the Go half of the contract, for Registry.Compile.
func (t *defined[In]) argsType() reflect.Type { return reflect.TypeFor[In]() }

func (t *defined[In]) Spec() session.ToolSpec { return t.spec() }
func (t *defined[In]) Traits() Traits         { return t.def.Traits }

func (t *defined[In]) Run(ctx context.Context, call Call) Result {
	var in In
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return Errorf(CodeInvalidArguments, "%s: got %s, want %s", typ.Field, typ.Value, wanted(typ))
		}
		return Errorf(CodeInvalidArguments, "%v", err)
	}
	return t.run(ctx, call, in)
}

// wanted names the type in JSON's words. A schema's "integer" lets 1.0 and 1e3
// through, and numbers that no machine word holds.
func wanted(e *json.UnmarshalTypeError) string {
	switch kind := e.Type.Kind().String(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number written without fraction or exponent"
	case kind == "slice":
		return "array"
	case kind == "struct", kind == "map":
		return "object"
	default:
		return fmt.Sprint(e.Type)
	}
}
