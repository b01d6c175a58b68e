package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
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
	err := json.Unmarshal(call.Arguments, &in)
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		if whole, changed := wholeNumbers(call.Arguments); changed {
			in = *new(In)
			err = json.Unmarshal(whole, &in)
		}
	}
	switch {
	case errors.As(err, &typ):
		return Errorf(CodeInvalidArguments, "%s: %s: got %s, want %s", t.def.Name, Brief(typ.Field), Brief(typ.Value), wanted(typ))
	case err != nil:
		return Errorf(CodeInvalidArguments, "%s: %v", t.def.Name, err)
	}
	return t.run(ctx, call, in)
}

// wholeNumbers writes the numbers that have a fraction or an exponent and are whole
// all the same, such as 2.0 and 1e3, without. JSON calls them integers, Go does not.
func wholeNumbers(raw json.RawMessage) (out json.RawMessage, changed bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw, false
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			f, err := v.Float64()
			if err == nil && strings.ContainsAny(string(v), ".eE") && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
				changed = true
				return json.Number(strconv.FormatInt(int64(f), 10))
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	out, err := json.Marshal(walk(v))
	return out, changed && err == nil
}

// wanted names the type in JSON's words. A schema's "integer" lets numbers through
// that no machine word holds.
func wanted(e *json.UnmarshalTypeError) string {
	switch kind := e.Type.Kind().String(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number of at most 64 bits"
	case kind == "slice":
		return "array"
	case kind == "struct", kind == "map":
		return "object"
	default:
		return fmt.Sprint(e.Type)
	}
}
