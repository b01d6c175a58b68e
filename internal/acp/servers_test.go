package acp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a server for a shell. It says its name, and what the client gave
// it in GREETING, and leaves its environment beside itself.
const mcpServer = `
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"hello","description":"Says hello.","inputSchema":{"type":"object"}}]}' ;;
  *'"tools/call"'*) r='{"content":[{"type":"text","text":"'"$GREETING"' from '"$1"'"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
`

const callsServer = `
responses:
  - tool_calls: [{id: c1, name: mcp__mine__hello, arguments: {}}]
  - text: done
  - tool_calls: [{id: c2, name: mcp__mine__hello, arguments: {}}]
  - text: without
  - tool_calls: [{id: c3, name: mcp__mine__hello, arguments: {}}]
  - text: refused
`

func (w *world) mcpScript() string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.ws), "server.sh")
	if err := os.WriteFile(path, []byte(mcpServer), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func stdioServer(name, script string) string {
	return fmt.Sprintf(`{"name":%q,"command":"sh","args":[%q,%q],"env":[{"name":"GREETING","value":"hi"}]}`, name, script, name)
}

func TestAServerOfTheClientIsConnectedForTheSessionAndAsks(t *testing.T) {
	w := newWorld(t, callsServer)
	servers := "[" + stdioServer("mine", w.mcpScript()) + "]"
	s := w.start()
	id := s.promptedWith(`{}`, servers)
	s.choose(s.asks(), "allow")
	s.update("hi from mine")
	s.answer(3).stop(t, "end_turn")
	s.end()

	// It is the session's while it is open, and no longer.
	s = w.start()
	s.begun()
	s.send(request(3, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, w.ws)), prompt(4, id, "go"))
	s.update("UNKNOWN_TOOL")
	s.answer(4).stop(t, "end_turn")
	s.send(request(5, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":%s}`, id, w.ws, servers)), prompt(6, id, "go"))
	s.choose(s.asks(), "reject")
	s.answer(6).stop(t, "end_turn")
	s.end()
}

func TestAServerOfTheClientOverHTTP(t *testing.T) {
	m := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	m.AddTool(&mcp.Tool{Name: "hello", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "token " + r.Extra.Header.Get("X-Token")}}}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, nil))
	defer web.Close()
	s := newWorld(t, callsServer).start()
	id := s.begunWith(`{}`, fmt.Sprintf(`[{"type":"http","name":"mine","url":%q,"headers":[{"name":"X-Token","value":"t0k"}]}]`, web.URL))
	if m := s.answer(1); !strings.Contains(string(m.Result), `"mcpCapabilities":{"http":true}`) {
		t.Errorf("initialize: %s", m.Result)
	}
	s.send(prompt(3, id, "go"))
	s.choose(s.asks(), "allow")
	s.update("token t0k")
	s.answer(3).stop(t, "end_turn")
	s.end()
}

func TestAServerOfTheConfigurationGoesBeforeTheClients(t *testing.T) {
	w := newWorld(t, callsServer)
	script := w.mcpScript()
	conf := fmt.Sprintf("mcp_servers:\n  mine: {command: sh, args: [%q, configured], env: {GREETING: hey}, trust: true}\n", script)
	if err := os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.start()
	id := s.begunWith(`{}`, "["+stdioServer("mine", script)+"]")
	s.send(prompt(3, id, "go")) // trusted: nobody is asked
	s.update("hey from configured")
	s.answer(3).stop(t, "end_turn")
	s.end()
	if !strings.Contains(s.errs.String(), "the MCP server mine is the one of") {
		t.Errorf("stderr: %s", s.errs)
	}
}

func TestServersThatCannotBeUsedAreLeftOutAndNamed(t *testing.T) {
	w := newWorld(t, callsServer)
	script := w.mcpScript()
	s := w.start()
	id := s.begunWith(`{}`, "["+strings.Join([]string{
		stdioServer("my server", script), stdioServer("mine", script), stdioServer("mine", script),
		`{"type":"sse","name":"old","url":"http://127.0.0.1:1","headers":[]}`, `{"type":"http","name":"file","url":"file:///x","headers":[]}`,
		`{"type":"dance","name":"odd"}`, `{"name":"gone","command":"no-such-command","args":[],"env":[]}`,
		`{"name":"here","command":"./server.sh","args":[],"env":[]}`,
	}, ",")+"]")
	s.send(prompt(3, id, "go"))
	s.choose(s.asks(), "allow")
	s.update("hi from mine")
	s.answer(3).stop(t, "end_turn")
	s.end()
	for _, want := range []string{
		"my server is left out: a server's name", "mine is left out: its name stands twice", "old is left out: ", "file is left out: ", "odd is left out: ",
		"gone is left out", "here is left out",
	} {
		if !strings.Contains(s.errs.String(), "deepseek: the MCP server "+want) {
			t.Errorf("stderr lacks %q: %s", want, s.errs)
		}
	}
}
