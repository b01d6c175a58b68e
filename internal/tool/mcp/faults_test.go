package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deepseek/internal/config"
)

// rawServer speaks the protocol by hand, so that it can break it: each tool is
// called after what it does.
func rawServer(t *testing.T) *httptest.Server {
	t.Helper()
	events := func(w http.ResponseWriter, data string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hi\n\ndata: "+data+"\n\n")
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if q.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
		var body string
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			body = answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "tools/list":
			var tools []string
			for _, name := range []string{"404", "500", "503", "429", "400 explained", "break", "half", "cut", "html", "no message", "no list", "weird", "weird events", "weird alone", "ok"} {
				tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
			}
			body = answer(`{"tools":[` + strings.Join(tools, ",") + `,{"name":5},7]}`)
		default:
			weird := `{"content":[{"type":"text","text":"one"},{"type":"weird\u001b[31m","foo":1},{"type":"text","text":5},null,{"type":"tool_use","id":"x","name":"n","input":{}},{"type":"text","text":"two"}]}`
			switch m.Params.Name {
			case "404", "500", "503", "429":
				var code int
				_, _ = fmt.Sscan(m.Params.Name, &code)
				http.Error(w, "oops", code)
				return
			case "400 explained":
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"x is missing"}}`, m.ID)
				return
			case "break":
				panic(http.ErrAbortHandler)
			case "half":
				w.Header().Set("Content-Length", "1000")
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case "cut":
				events(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
				return
			case "html":
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html>")
				return
			case "no message":
				body = `{"hello":1}`
			case "no list":
				body = answer(`{"content":"not a list"}`)
			case "weird":
				body = answer(weird)
			case "weird events":
				events(w, answer(weird))
				return
			case "weird alone":
				body = answer(`{"content":[{"type":"weird"}],"structuredContent":{"a":1}}`)
			default:
				body = answer(`{"content":[{"type":"text","text":"fine"}]}`)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	web.Config.SetKeepAlivesEnabled(false) // so that each request has to reach it anew
	t.Cleanup(web.Close)
	return web
}

// What the library says of a program that closes its output is no reader's matter.
func TestAProgramThatClosesItsOutputMidCall(t *testing.T) {
	r := newRig(t, map[string]config.Server{"w": local("closes")})
	r.exit = exitTime // it never does
	r.start()
	got := r.run(t.Context(), "mcp__w__t", `{}`)
	if got.Code != CodeBroken || !strings.Contains(got.Content, "broke off: it closed its output. What") {
		t.Errorf("%s %q", got.Code, got.Content)
	}
}

// A server that fails in the middle of a call has not said that the tool failed:
// what the call did is not known.
func TestAnAddressThatFailsMidCall(t *testing.T) {
	web := rawServer(t)
	r := newRig(t, map[string]config.Server{"w": {URL: web.URL + "/mcp?password=s3cret"}}).start()
	weird := "one\n[content of the kind \"weird\\x1b[31m\", 34 bytes, not shown]\n[content of the kind \"text\", 24 bytes, not shown]\n[content that is not understood, 4 bytes, not shown]\n[content that is no tool's]\ntwo"
	for _, c := range []struct{ name, code, want string }{
		{"404", CodeBroken, "it answers 404 Not Found"},
		{"500", CodeBroken, "it answers 500 Internal Server Error"},
		{"503", CodeBroken, "it answers 503 Service Unavailable"},
		{"429", CodeBroken, "it answers 429 Too Many Requests"},
		{"400_explained", CodeError, "x is missing"},
		{"break", CodeBroken, "the connection broke off (EOF)"},
		{"half", CodeBroken, "unexpected EOF"},
		{"cut", CodeBroken, "without response"},
		{"html", CodeBroken, `it answers with the content type "text/html", which is not one`},
		{"no_message", CodeBroken, "broke off: "},
		{"no_list", CodeBroken, "its answer has another form than the protocol says"},
		{"weird", "", weird},
		{"weird_events", "", weird},
		{"weird_alone", "", "[content of the kind \"weird\", 16 bytes, not shown]\n{\"a\":1}"},
	} {
		got := r.run(t.Context(), "mcp__w__"+c.name, `{}`)
		if got.Code != c.code || !strings.Contains(got.Content, c.want) || c.code == "" && got.Content != c.want {
			t.Errorf("%s: %s %q", c.name, got.Code, got.Content)
		}
		if c.code == CodeBroken && !strings.Contains(got.Content, "What the call did is not known") {
			t.Errorf("%s: %q", c.name, got.Content)
		}
		for _, bad := range []string{"s3cret", "mcp.", "json:", "rejected by transport", "calling \"", "sending \""} {
			if strings.Contains(got.Content, bad) {
				t.Errorf("%s: %q", c.name, got.Content)
			}
		}
		if got := r.run(t.Context(), "mcp__w__ok", `{}`); got.Content != "fine" {
			t.Errorf("after %s: %+v", c.name, got)
		}
	}
	if notes := r.noted(); strings.Count(notes, "the tool without a name of the MCP server w is left out") != 2 {
		t.Error(notes)
	}
	web.CloseClientConnections()
	web.Close()
	if got := r.run(t.Context(), "mcp__w__ok", `{}`); got.Code != CodeUnreachable || !strings.Contains(got.Content, "The call was not sent") || !strings.Contains(got.Content, "connection refused") {
		t.Errorf("%+v", got)
	}
}

func TestUnderstoodLeavesAloneWhatTheLibraryKnows(t *testing.T) {
	for _, in := range []string{
		"", "x\n", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}` + "\n", `{"result":{"content":"no list"}}`, `{"result":{"content":null}}`,
		`{"result":{"tools":[{"name":"a","inputSchema":{}}]}}` + "\r\n", `{"method":"x","params":{"content":[1]}}`, `{"result":5,"content":[]}`, `{"result":{"structuredContent":{"content":[1]},"content":[]}}`,
	} {
		if got := string(understood([]byte(in))); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
	got := string(understood([]byte(`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"x"}]}}` + "\r\n")))
	if !strings.HasSuffix(got, "}\r\n") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("%q", got)
	}
}

func FuzzUnderstood(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"x"},5]}}`))
	f.Add([]byte(`{"id":1,"result":{"tools":[{"name":5}]}}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var whole struct{ Result map[string]json.RawMessage }
		var list []json.RawMessage
		out := understood(in)
		if json.Unmarshal(out, &whole) == nil && json.Unmarshal(whole.Result["content"], &list) == nil && list != nil && !fits[sdk.CallToolResult]("content", whole.Result["content"]) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}
