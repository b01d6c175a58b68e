package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deepseek/internal/permission"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// Codes of calls that a server did not answer as wished.
const (
	CodeError       = "MCP_ERROR"       // the tool says that it failed
	CodeUnreachable = "MCP_UNREACHABLE" // the call was not sent
	CodeBroken      = "MCP_BROKEN"      // the server died or broke the rules; what the call did is not known
	CodeTimeout     = "MCP_TIMEOUT"     // what the call did is not known
)

// remote is a tool of a server. It is immutable.
type remote struct {
	server *server
	policy Policy
	name   string // the server's
	spec   session.ToolSpec
}

// Spec is the tool as the model sees it.
func (r *remote) Spec() session.ToolSpec { return r.spec }

// Traits are those of the worst: what a server says of its tools is not believed.
func (r *remote) Traits() tool.Traits { return tool.Traits{} }

// Run asks for approval where it must, and calls the server.
func (r *remote) Run(ctx context.Context, call tool.Call) tool.Result {
	err := r.policy.Server(ctx, permission.Request{
		Tool: r.spec.Name, CallID: call.ID,
		Title:  fmt.Sprintf("call %s of the MCP server %s", line(r.name, maxName), r.server.name),
		Detail: laidOut(call.Arguments),
		Reason: fmt.Sprintf("The MCP server %s is not trusted", r.server.name),
	}, r.server.conf.Trust)
	var denied *permission.Denied
	switch {
	case errors.As(err, &denied):
		res := tool.Errorf(tool.CodeDenied, "%s", denied.Message)
		if denied.Asked {
			res.Meta = &session.ToolMeta{Denied: true}
		}
		return res
	case ctx.Err() != nil:
		return tool.Errorf(tool.CodeAborted, "cancelled before the call was sent")
	case err != nil:
		return tool.Errorf(tool.CodeInternal, "%v", err)
	}
	return r.server.call(ctx, r.name, call.Arguments)
}

// laidOut is JSON for a person to read, else as it is.
func laidOut(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// result is what the model reads of an answer.
func (s *server) result(res *sdk.CallToolResult) tool.Result {
	var parts []string
	text := false
	for _, c := range res.Content {
		part := describeContent(c)
		if t, ok := c.(*sdk.TextContent); ok && t.Text != "" && t.Meta[placeholder] == nil {
			text = true
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if !text && res.StructuredContent != nil {
		if raw, err := session.Marshal(res.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	content := s.family.env.Key.String(strings.Join(parts, "\n"))
	if res.IsError {
		if content == "" {
			content = "the tool failed and does not say why"
		}
		return tool.Result{Code: CodeError, Content: CodeError + ": " + content}
	}
	return tool.Result{Content: content}
}

// describeContent is a part of an answer as text: what is no text is named.
func describeContent(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", line(c.MIMEType, 100), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", line(c.MIMEType, 100), len(c.Data))
	case *sdk.ResourceLink:
		return strings.TrimSpace(fmt.Sprintf("[resource %s] %s", line(c.URI, 1000), line(c.Name, 200)))
	case *sdk.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return "[resource without content]"
		case r.Blob != nil:
			return fmt.Sprintf("[resource %s %s, %d bytes]", line(r.URI, 1000), line(r.MIMEType, 100), len(r.Blob))
		default:
			return fmt.Sprintf("[resource %s]\n%s", line(r.URI, 1000), r.Text)
		}
	}
	return "[content that is no tool's]" // a call or a result of a model's
}

// failure is what the model reads where there was no answer.
func (s *server) failure(ctx, bounded context.Context, c *conn, err error) tool.Result {
	var refused *jsonrpc.Error
	answered := errors.As(err, &refused) && !ours(refused)
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return tool.Errorf(tool.CodeAborted, "cancelled; the MCP server %s was told, what the call had done by then is not known", s.name)
	case bounded.Err() != nil:
		return tool.Errorf(CodeTimeout, "the MCP server %s did not answer in %v; what the call did is not known", s.name, s.patience())
	case answered:
		return tool.Errorf(CodeError, "%s", cut(tool.Printable(s.family.env.Key.String(refused.Message)), tool.MaxContent))
	}
	why := s.family.words(c.link.why(err))
	if errors.As(err, &dial) && dial.Op == "dial" {
		return tool.Errorf(CodeUnreachable, "the MCP server %s is not there: %s. The call was not sent.", s.name, why)
	}
	return tool.Errorf(CodeBroken, "the MCP server %s broke off: %s. What the call did is not known; the next call begins with the server anew.", s.name, why)
}

// ours tells whether an error that looks like a server's is the library's own word
// for a connection that failed.
func ours(e *jsonrpc.Error) bool {
	return e.Code == -32005 && e.Message == "rejected by transport" || e.Code == -32003 && e.Message == "client is closing"
}
