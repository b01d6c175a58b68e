package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The servers of the tests are this test binary, told by its first argument how
// to behave.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") == "" {
		os.Exit(m.Run())
	}
	behave(os.Args[1])
}

func behave(how string) {
	switch how {
	case "exits":
		fmt.Fprintln(os.Stderr, "starting\nno such database: sk-test-secret-key")
		os.Exit(3)
	case "hangs":
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		return
	case "babbles":
		for {
			if _, err := fmt.Println(strings.Repeat("noise ", 1000)); err != nil {
				return
			}
		}
	case "deaf": // answers the handshake and then never reads again
		in := bufio.NewReader(os.Stdin)
		for i := range 3 {
			text, err := in.ReadString('\n')
			if err != nil {
				return
			}
			var m struct{ ID json.RawMessage }
			_ = json.Unmarshal([]byte(text), &m)
			switch i {
			case 0:
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"1"}}}`+"\n", m.ID)
			case 2:
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`+"\n", m.ID)
			}
		}
		time.Sleep(time.Hour) // the test ends it
		return
	case "refuses-handshake", "old-protocol", "no-tools", "refuses-list", "closes": // speaks by hand
		byHand(how)
		return
	case "stubborn": // stays when its input ends and when it is asked to go
		signal.Ignore(syscall.SIGTERM)
		defer time.Sleep(time.Hour) // the test ends it
		child := exec.CommandContext(context.Background(), "sh", "-c", "trap '' TERM; sleep 300 & sleep 300; wait")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = child.Start()
	case "web":
		serveWeb()
		return
	case "noisy":
		fmt.Println("Server listening!")
		fmt.Println(`{"level":"info","msg":"up"}`)
		fmt.Println("[1,2]")
	}
	s := testServer()
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// byHand answers in ways that the library does not let a server answer.
func byHand(how string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		result := `"error":{"code":-1,"message":"not today"}`
		switch m.Method {
		case "initialize":
			version, caps := "2025-11-25", `{"tools":{}}`
			switch how {
			case "old-protocol":
				version = "1999-01-01"
			case "no-tools":
				caps = "{}"
			}
			result = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"h","version":"1"}}`, version, caps)
			if how == "refuses-handshake" {
				result = `"error":{"code":-1,"message":"no way\u001b[31m"}`
			}
		case "tools/list":
			if how == "closes" {
				result = `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
			}
		case "tools/call":
			_ = os.Stdout.Close()
			time.Sleep(time.Hour) // the test ends it
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, result)
		}
	}
}

// serveWeb offers the server over HTTP to who has the token, and prints its address.
func serveWeb() {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("http://" + l.Addr().String())
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return testServer() }, nil)
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.URL.Path == "/away":
			http.Redirect(w, q, "http://localhost:1/mcp", http.StatusTemporaryRedirect)
		case q.Header.Get("X-Token") != "t0k":
			http.Error(w, "no", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, q)
		}
	}))
}

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

// testServer is what the servers that behave offer.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again."}, func(_ context.Context, _ *sdk.CallToolRequest, in echoArgs) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "echoing "+in.Text)
		return text("you said " + in.Text), nil, nil
	})
	plain := func(name string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	plain("fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("no such table")
		r.IsError = true
		return r, nil
	})
	plain("refuses", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("bad weather")
	})
	plain("dies", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "fatal: out of cheese")
		os.Exit(7)
		return nil, nil
	})
	plain("waits", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "waiting")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "told to stop")
		return nil, ctx.Err()
	})
	plain("endless", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", testLimit)), nil
	})
	plain("prints", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for range testLimit >> 10 {
			fmt.Println(strings.Repeat("p", 1100))
		}
		return text("done"), nil
	})
	plain("chatters", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for range testLimit >> 10 {
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}`+"\n", strings.Repeat("p", 1100))
		}
		return text("done"), nil
	})
	plain("environ", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	plain("mixed", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"not": "shown"}, Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 12345)},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 7)}, &sdk.ResourceLink{URI: "file:///a", Name: "a"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Text: "of b"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "x/y", Blob: []byte("123")}},
			&sdk.TextContent{Text: "two"},
		}}, nil
	})
	plain("structured", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"z": "<1>", "a": []int{1}}, Content: []sdk.Content{}}, nil
	})
	plain("nothing", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
	})
	return s
}
