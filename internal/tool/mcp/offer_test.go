package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"deepseek/internal/config"
	"deepseek/internal/redact"
	"deepseek/internal/tool"
)

// offering is what a family makes of lists of tools, by server.
func offering(t *testing.T, lists map[string][]offer) (tools []tool.Tool, notes string) {
	t.Helper()
	conf := map[string]config.Server{}
	for name := range lists {
		conf[name] = config.Server{}
	}
	f := New(Env{Servers: named(conf), Key: redact.New(testKey), Note: func(l string) { notes += l + "\n" }})
	all := make([][]offer, len(f.servers))
	for i, s := range f.servers {
		for _, o := range lists[s.name] {
			o.server = s
			all[i] = append(all[i], o)
		}
	}
	f.offered = f.choose(all)
	return f.Tools(nil), notes
}

func TestNamesFitTheModelAndDiffer(t *testing.T) {
	long := strings.Repeat("a_long_name", 10)
	tools, notes := offering(t, map[string][]offer{
		"s": {{name: "a.b"}, {name: "a_b"}, {name: "a/b"}, {name: "a_b"}, {name: long + "1"}, {name: long + "2"}, {name: ""}, {name: "größe"}, {name: "ok"}},
		"x": {{name: "ok"}},
	})
	seen := map[string]bool{}
	fits := regexp.MustCompile(`^mcp__(s|x)__[A-Za-z0-9_-]+$`)
	for _, tl := range tools {
		name := tl.Spec().Name
		if seen[name] || len(name) > 64 || !fits.MatchString(name) {
			t.Errorf("%q", name)
		}
		seen[name] = true
	}
	if len(tools) != 8 || !strings.Contains(notes, "the tool a_b of the MCP server s is left out: the name is listed more than once") ||
		!strings.Contains(notes, "the tool without a name of the MCP server s is left out: it has no name") || strings.Count(notes, "\n") != 2 || !seen["mcp__s__ok"] || !seen["mcp__x__ok"] || !seen["mcp__s__a_b"] {
		t.Error(len(tools), seen, notes)
	}
}

func TestOrderAndSchemasDependOnContentAlone(t *testing.T) {
	schema := func(raw string) any {
		var v any
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := []offer{{name: "b", schema: schema(`{"type":"object","properties":{"z":{"type":"string"},"a":{"description":"<x>"}},"$schema":"http://x"}`)}, {name: "a"}}
	b := []offer{{name: "a"}, {name: "b", schema: schema(`{"properties":{"a":{"description":"<x>"},"z":{"type":"string"}},"type":"object"}`)}}
	one, _ := offering(t, map[string][]offer{"s": a})
	two, _ := offering(t, map[string][]offer{"s": b})
	x, err := json.Marshal([]any{one[0].Spec(), one[1].Spec()})
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal([]any{two[0].Spec(), two[1].Spec()})
	if err != nil {
		t.Fatal(err)
	}
	if string(x) != string(y) || string(one[1].Spec().Parameters) != `{"properties":{"a":{"description":"<x>"},"z":{"type":"string"}},"type":"object"}` || string(one[0].Spec().Parameters) != `{"properties":{},"type":"object"}` {
		t.Errorf("%s\n%s", x, y)
	}
}

func TestWhatServersAddToARequestIsBounded(t *testing.T) {
	many := make([]offer, 150)
	for i := range many {
		many[i] = offer{name: fmt.Sprintf("t%03d", i)}
	}
	tools, notes := offering(t, map[string][]offer{"s": many})
	if len(tools) != maxTools || !strings.Contains(notes, "50 tools of the MCP server s are left out") {
		t.Error(len(tools), notes)
	}
	big := map[string]any{"type": "object", "description": strings.Repeat("x", maxSchema)}
	tools, notes = offering(t, map[string][]offer{"s": {
		{name: "big", schema: big},
		{name: "array", schema: []any{}},
		{name: "string", schema: map[string]any{"type": "string"}},
		{name: "talks", description: "key " + testKey + "\x00" + strings.Repeat("ü", maxDescription)},
	}})
	if len(tools) != 1 || strings.Count(notes, "\n") != 3 {
		t.Fatal(len(tools), notes)
	}
	if d := tools[0].Spec().Description; len(d) > maxDescription || !strings.HasPrefix(d, `key [key]\x00`) || !strings.HasSuffix(d, "ü…") {
		t.Error(len(d), d[:30])
	}
	half := map[string]any{"type": "object", "description": strings.Repeat("x", maxSchema-1000)}
	for i := range many[:20] {
		many[i].schema = half
	}
	if tools, notes = offering(t, map[string][]offer{"s": many[:20]}); len(tools) != 8 || !strings.Contains(notes, "12 tools") {
		t.Error(len(tools), notes)
	}
}

// One server that lists very many tools leaves the others their places.
func TestServersShareThePlaces(t *testing.T) {
	list := func(name string, n int, text string) []offer {
		out := make([]offer, n)
		for i := range out {
			out[i] = offer{name: fmt.Sprintf("%s%03d", name, i), description: text}
		}
		return out
	}
	count := func(tools []tool.Tool) map[string]int {
		n, last := map[string]int{}, ""
		for _, tl := range tools {
			name := tl.Spec().Name
			if name <= last {
				t.Errorf("%s after %s", name, last)
			}
			n[strings.Split(name, "__")[1]]++
			last = name
		}
		return n
	}
	tools, notes := offering(t, map[string][]offer{"many": list("m", 300, ""), "few": list("f", 5, ""), "more": list("o", 60, "")})
	if n := count(tools); n["few"] != 5 || n["more"] != 47 || n["many"] != 48 {
		t.Error(n)
	}
	if !strings.Contains(notes, "252 tools of the MCP server many are left out") || !strings.Contains(notes, "13 tools of the MCP server more are left out") || !strings.Contains(notes, "They are o047, o048") || strings.Contains(notes, "server few") {
		t.Error(notes)
	}
	schema := map[string]any{"type": "object", "description": strings.Repeat("x", maxSchema-1000)}
	big := list("b", 50, "")
	for i := range big {
		big[i].schema = schema
	}
	tools, notes = offering(t, map[string][]offer{"big": big, "small": list("s", 40, "d")})
	if n := count(tools); n["small"] != 40 || n["big"] < 5 {
		t.Error(n, notes)
	}
}

func TestNotesOfOneServerAreBounded(t *testing.T) {
	var list []offer
	for i := range 500 {
		list = append(list, offer{name: fmt.Sprintf("bad%03d", i), schema: "no object"}, offer{name: "same"})
	}
	tools, notes := offering(t, map[string][]offer{"s": list})
	if len(tools) != 1 || strings.Count(notes, "\n") != maxNoted+1 || !strings.Contains(notes, "491 more tools of the MCP server s are left out\n") {
		t.Error(len(tools), notes)
	}
}

func TestSieve(t *testing.T) {
	msg := `{"jsonrpc":"2.0","id":1,"result":{}}`
	for in, want := range map[string]string{
		"":                            "",
		msg:                           msg + "\n",
		msg + "\n" + msg + "\r\n":     msg + "\n" + msg + "\r\n",
		"hello\n\n" + msg + "\nbye":   msg + "\n",
		`{"a":1}` + "\n[" + msg + "]": "",
		"  " + msg + "  \n":           "  " + msg + "  \n",
		`{"jsonrpc":"2.0"` + "\n":     "",
		msg + msg + "\n":              "",
		"\xff\xfe\x00\n" + msg + "\n": msg + "\n",
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(w, in)
			_ = w.Close()
		}()
		s := newSieve(r, testLimit)
		got, err := io.ReadAll(s)
		if string(got) != want || err != nil || s.fault() != nil {
			t.Errorf("%q: %q %v", in, got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLastLine(t *testing.T) {
	for in, want := range map[string]string{"": "", "a\nb\n": "b", "a\n\n \n": "a", "a\nb": "b", "x" + strings.Repeat("y", 5000) + "\n": "x" + strings.Repeat("y", maxLast-1)} {
		var l lastLine
		for i := range len(in) {
			_, _ = l.Write([]byte(in[i : i+1]))
		}
		if got := l.String(); got != want {
			t.Errorf("%.20q: %.20q", in, got)
		}
	}
}
