package tool

import (
	"context"
	"strings"
	"testing"
)

type sample struct {
	Path  string `json:"path"`
	Limit int    `json:"limit"`
	Mode  string `json:"mode"`
	Items []struct {
		Name string `json:"name"`
	} `json:"items"`
}

const sampleSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "limit": {"type": "integer", "minimum": 1},
    "mode": {"type": "string", "enum": ["a", "b"]},
    "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}}
  },
  "required": ["path"],
  "additionalProperties": false
}`

func sampleTool(name string) Tool {
	return Define(Definition{Name: name, Text: " does things \n", Schema: sampleSchema}, func(_ context.Context, _ Call, in sample) Result {
		return Result{Content: in.Path}
	})
}

func registry(t *testing.T, tools ...Tool) *Registry {
	t.Helper()
	r, err := NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckTellsWhatIsWrong(t *testing.T) {
	r := registry(t, sampleTool("first"), sampleTool("second"))
	for _, c := range []struct{ name, tool, args, code, want string }{
		{"fits", "first", `{"path":"x","limit":3,"mode":"a"}`, "", ""},
		{"unknown tool lists the names in order", "third", `{}`, CodeUnknownTool, `no tool "third"; the tools are first, second`},
		{"names are exact", "First", `{}`, CodeUnknownTool, "first, second"},
		{"nothing counts as an empty object", "first", "", CodeInvalidArguments, "path is missing"},
		{"white space too", "first", " \n", CodeInvalidArguments, "path is missing"},
		{"not JSON names the byte", "first", `{"path":x}`, CodeInvalidArguments, `invalid character 'x' looking for beginning of value at byte 8, after "{\"path\":"`},
		{"cut off", "first", `{"path":"abc`, CodeInvalidArguments, "unexpected end of JSON input at byte 12"},
		{"a second value", "first", `{"path":"x"}{}`, CodeInvalidArguments, "after top-level value at byte 12"},
		{"an array", "first", `[1]`, CodeInvalidArguments, "must be one JSON object, got an array"},
		{"a string", "first", `"x"`, CodeInvalidArguments, "got a string"},
		{"null", "first", ` null`, CodeInvalidArguments, "got null"},
		{"a number", "first", `-1`, CodeInvalidArguments, "got a number"},
		{"a boolean", "first", `true`, CodeInvalidArguments, "got a boolean"},
		{"wrong type names path, limit and value", "first", `{"path":7}`, CodeInvalidArguments, "path: got number, want string; the value is 7"},
		{"null is no value", "first", `{"path":"x","limit":null}`, CodeInvalidArguments, "limit: got null, want integer"},
		{"below the minimum", "first", `{"path":"x","limit":0}`, CodeInvalidArguments, "limit: must be at least 1, is 0"},
		{"not one of", "first", `{"path":"x","mode":"c"}`, CodeInvalidArguments, `mode: must be one of "a", "b"; the value is "c"`},
		{"unknown property", "first", `{"path":"x","file":1}`, CodeInvalidArguments, "file is unknown, known are items, limit, mode, path"},
		{"case counts", "first", `{"Path":"x","path":"y"}`, CodeInvalidArguments, "Path is unknown"},
		{"nested", "first", `{"path":"x","items":[{"name":"a"},{"nom":1}]}`, CodeInvalidArguments, "items[1]: name is missing; items[1]: nom is unknown, known are name"},
		{"too short", "first", `{"path":""}`, CodeInvalidArguments, "path: must have at least 1 characters, has 0"},
		{"a fraction", "first", `{"path":"x","limit":1.5}`, CodeInvalidArguments, "limit: got number, want integer; the value is 1.5"},
		{"all at once", "first", `{"limit":0,"mode":"c"}`, CodeInvalidArguments, "path is missing; "},
		{"half a surrogate pair", "first", `{"path":"\ud83d"}`, CodeInvalidArguments, `\ud83d at byte 9 is half`},
		{"the wrong half", "first", `{"path":"\ude00\ud83d"}`, CodeInvalidArguments, `\ude00 at byte 9 is half`},
		{"a whole pair", "first", `{"path":"\ud83d\ude00"}`, "", ""},
		{"an escaped backslash before u", "first", `{"path":"\\ud83d"}`, "", ""},
		{"invalid UTF-8", "first", "{\"path\":\"a\xff\"}", CodeInvalidArguments, "byte 0xFF at byte 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tl, args, res := r.Check(c.tool, c.args)
			if c.code == "" {
				if res != nil || tl == nil || string(args) != c.args {
					t.Fatalf("got %v %s %v", tl, args, res)
				}
				return
			}
			if res == nil || res.Code != c.code || !strings.HasPrefix(res.Content, c.code+": ") || !strings.Contains(res.Content, c.want) {
				t.Fatalf("got %+v\nwant %s … %q", res, c.code, c.want)
			}
		})
	}
}

func TestCheckBoundsTheList(t *testing.T) {
	r := registry(t, sampleTool("x"))
	_, _, res := r.Check("x", `{"path":"p","items":[`+strings.Repeat(`{},`, 999)+`{}]}`)
	if res == nil || len(res.Content) > 2000 || !strings.Contains(res.Content, "… 980 more") {
		t.Fatalf("got %+v", res)
	}
}

func TestSpecsAreCompactAndInOrder(t *testing.T) {
	r := registry(t, sampleTool("b"), sampleTool("a"))
	specs := r.Specs()
	if specs[0].Name != "b" || specs[1].Name != "a" || specs[0].Description != "does things" {
		t.Fatalf("got %+v", specs)
	}
	if strings.ContainsAny(string(specs[0].Parameters), "\n\t") || !strings.HasPrefix(string(specs[0].Parameters), `{"type":"object","properties":{"path":`) {
		t.Fatalf("got %s", specs[0].Parameters)
	}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
}

func TestCompileHoldsTheSchemaAgainstTheGoType(t *testing.T) {
	type args struct {
		A int      `json:"a"`
		B []string `json:"b"`
	}
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}}}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array"}}}`, `arguments.a: type "string", in Go it is "integer"`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, "Go has b, the schema not"},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array"},"c":{}}}`, "the schema has c, Go not"},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"integer"}}}}`, "arguments.b[]"},
	} {
		tl := Define(Definition{Name: "x", Schema: c.schema}, func(context.Context, Call, args) Result { return Result{} })
		err := registry(t, tl).Compile()
		if got := err != nil; got != (c.want != "") || got && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.schema, err)
		}
	}
}

func TestTwoToolsOfOneName(t *testing.T) {
	if _, err := NewRegistry(sampleTool("a"), sampleTool("a")); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("got %v", err)
	}
}

func TestSelectKeepsTheOrder(t *testing.T) {
	r := registry(t, sampleTool("c"), sampleTool("b"), sampleTool("a")).Select(func(t Tool) bool { return t.Spec().Name != "b" })
	if got := strings.Join(r.Names(), " "); got != "c a" {
		t.Fatalf("got %s", got)
	}
	if _, ok := r.Lookup("b"); ok {
		t.Fatal("b is still there")
	}
	if _, ok := r.Lookup("a"); !ok {
		t.Fatal("a is gone")
	}
}

func TestASchemaFromOutsideLoadsNothingAndBlocksNothing(t *testing.T) {
	for _, schema := range []string{`{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1:1/x"}`, `{"type":"nonsense"}`, `no JSON`, `{"properties":{"a":{"pattern":"(?=x)"}}}`} {
		tl := Define(Definition{Name: "x", Schema: schema}, func(context.Context, Call, struct{}) Result { return Result{} })
		r := registry(t, tl)
		if _, _, res := r.Check("x", `{"a":"b"}`); res != nil {
			t.Errorf("%s: %+v", schema, res)
		}
		if err := r.Compile(); err == nil && schema != "no JSON" {
			t.Errorf("%s compiles", schema)
		}
	}
}

func TestKeywordsThatTheLibraryJudges(t *testing.T) {
	for _, c := range []struct{ schema, args, want string }{
		{`{"properties":{"a":{"pattern":"^x"}}}`, `{"a":"b"}`, `a: pattern: "b" does not match`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, `a: anyOf`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":null}`, ``},
		{`{"properties":{"a":{"type":["integer","null"]}}}`, `{"a":"x"}`, `a: got string, want integer or null`},
		{`{"$defs":{"t":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/t"}}}`, `{"a":1}`, `want "string"`},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, `{"a":1,"b":2}`, `want "string"`},
		{`{"properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":false}`, `{"a":1,"x1":2,"y":3}`, `y`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"multipleOf":2}}}`, `{"a":3}`, `a: multipleOf`},
	} {
		tl := Define(Definition{Name: "x", Schema: c.schema}, func(context.Context, Call, struct{}) Result { return Result{} })
		_, _, res := registry(t, tl).Check("x", c.args)
		if got := res != nil; got != (c.want != "") || got && !strings.Contains(res.Content, c.want) {
			t.Errorf("%s with %s: %+v", c.schema, c.args, res)
		}
	}
}

func TestRunTellsOfNumbersThatNoWordHolds(t *testing.T) {
	tl := sampleTool("x")
	for _, args := range []string{`{"path":"x","limit":1.5}`, `{"path":"x","limit":1e300}`, `{"path":"x","limit":99999999999999999999}`} {
		res := tl.Run(context.Background(), Call{Arguments: []byte(args)})
		if res.Code != CodeInvalidArguments || !strings.Contains(res.Content, "x: limit: got number") {
			t.Errorf("%s: %+v", args, res)
		}
	}
}

// By JSON Schema 2.0 is an integer, and so it is to every tool.
func TestRunTakesWholeNumbersHoweverWritten(t *testing.T) {
	type item struct {
		N int64 `json:"n"`
	}
	type args struct {
		Limit int     `json:"limit"`
		Wait  *int64  `json:"wait"`
		Real  float64 `json:"real"`
		Text  string  `json:"text"`
		Items []item  `json:"items"`
	}
	var got args
	tl := Define(Definition{Name: "x", Schema: `{}`}, func(_ context.Context, _ Call, in args) Result { got = in; return Result{} })
	res := tl.Run(context.Background(), Call{Arguments: []byte(`{"limit":2.0,"wait":1e3,"real":2.5,"text":"<1.0>\u2028","items":[{"n":-3.0},{"n":9007199254740993}]}`)})
	if res.Code != "" || got.Limit != 2 || *got.Wait != 1000 || got.Real != 2.5 || got.Text != "<1.0>\u2028" || len(got.Items) != 2 || got.Items[0].N != -3 || got.Items[1].N != 9007199254740993 {
		t.Errorf("%+v %+v", res, got)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"path":"x"}`, `{"path":"\ud83d\ude00"}`, `[`, "{\"path\":\"\xff\"}", `{"path":"\u`} {
		f.Add(s)
	}
	r, err := NewRegistry(sampleTool("x"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		tl, raw, res := r.Check("x", args)
		if res != nil {
			if !strings.HasPrefix(res.Content, CodeInvalidArguments+": x: ") {
				t.Fatalf("got %q", res.Content)
			}
			return
		}
		if got := tl.Run(context.Background(), Call{Arguments: raw}); got.Code != "" && !strings.Contains(got.Content, "limit") {
			t.Fatalf("accepted, then refused: %q: %+v", args, got)
		}
	})
}
