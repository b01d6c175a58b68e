package acp

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

func TestParametersGoRoundTheSDK(t *testing.T) {
	for _, c := range []struct{ name, line, handed, params string }{
		{
			"a request", `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"a":"<\u003c"}}`,
			`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}`, `{"a":"<\u003c"}`,
		},
		{"a notification", `{"jsonrpc":"2.0","method":"session/cancel","params":[1]}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{}}`, `[1]`},
		{"no parameters", `{"jsonrpc":"2.0","id":"a","method":"x"}`, `{"jsonrpc":"2.0","id":"a","method":"x","params":{}}`, `{}`},
		{"null", `{"jsonrpc":"2.0","id":"a","method":"x","params":null}`, `{"jsonrpc":"2.0","id":"a","method":"x","params":{}}`, `{}`},
		// The SDK reads these itself.
		{
			"a cancel of a request", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7,"more":[1]}}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`, "",
		},
		{"a cancel of nothing", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[7]}}`, "", ""},
		{"a result", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, ""},
	} {
		g := newGate(nil, newWire(&bytes.Buffer{}))
		if err := g.take([]byte(c.line), false); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(string(g.rest), "\n"); got != c.handed {
			t.Errorf("%s: handed out %s, want %s", c.name, got, c.handed)
		}
		if g.waiting != (c.params != "") {
			t.Errorf("%s: a handler is awaited: %v", c.name, g.waiting)
		}
		if c.params != "" {
			if got := string(g.handed()); got != c.params {
				t.Errorf("%s: parameters %s, want %s", c.name, got, c.params)
			}
		}
	}
}

func TestWhatIsLongerThanTheSDKReadsIsNotHandedOut(t *testing.T) {
	var out bytes.Buffer
	g := newGate(nil, newWire(&out))
	long := strings.Repeat("x", longestHanded)
	if err := g.take([]byte(`{"jsonrpc":"2.0","id":7,"method":"`+long+`"}`), false); err != nil || g.rest != nil || g.waiting {
		t.Errorf("a method: %v, handed out %d bytes", err, len(g.rest))
	}
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`; !strings.HasPrefix(out.String(), want) {
		t.Errorf("a method is answered %.100s", out.String())
	}
	if err := g.take([]byte(`{"jsonrpc":"2.0","id":1,"result":"`+long+`"}`), false); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`; !strings.HasPrefix(string(g.rest), want) || g.waiting {
		t.Errorf("an answer: handed out %.100s", g.rest)
	}
}

func TestALineThatIsTooLongIsAnsweredByWhatItsBeginningTells(t *testing.T) {
	for _, c := range []struct{ name, beginning, id, handed string }{
		{"a request", `{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"xx`, "7", ""},
		{"an id that is text", `{"method":"x","id":"a\u0041","params":["xx`, `"a\u0041"`, ""},
		{"no method yet", `{"id":7,"params":["xx`, "7", ""},
		{"an id behind the rest", `{"method":"x","params":["xx`, "null", ""},
		{"an id within something else", `{"_x":{"id":8},"params":["xx`, "null", ""},
		{"an id that is cut", `{"method":"x","id":12`, "null", ""},
		{"an id of another kind", `{"id":[7],"method":"x","params":["xx`, "null", ""},
		{"an id that is null", `{"id":null,"method":"x","params":["xx`, "null", ""},
		{"no object", `["xx`, "null", ""},
		{"no JSON", "xx", "null", ""},
		{"nothing", "", "null", ""},
		{"an answer", `{"jsonrpc":"2.0","id":7,"result":{"a":"xx`, "", `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`},
		{"an error", `{"id":7,"error":{"message":"xx`, "", `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`},
	} {
		var out bytes.Buffer
		g := newGate(nil, newWire(&out))
		if err := g.take([]byte(c.beginning), true); err != nil || g.waiting {
			t.Errorf("%s: %v", c.name, err)
		}
		if want := `{"jsonrpc":"2.0","id":` + c.id + `,"error":{"code":-32600,"message":"the line is longer`; c.id != "" && !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: answered %s, want %s", c.name, out.String(), want)
		}
		if c.id == "" && (out.Len() > 0 || !strings.HasPrefix(string(g.rest), c.handed)) {
			t.Errorf("%s: answered %s, handed out %s", c.name, out.String(), g.rest)
		}
	}
}

func TestLongParametersAreCheckedWithoutCopies(t *testing.T) {
	const long = 8 << 20
	raw := []byte(`{"sessionId":"S","prompt":[{"type":"text","text":"` + strings.Repeat("x", long) + `"}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := checkParams(raw, reflect.TypeFor[sdk.PromptRequest]())
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > long/2 {
		t.Errorf("%v, %d bytes were allocated for %d", err, n, len(raw))
	}
}
