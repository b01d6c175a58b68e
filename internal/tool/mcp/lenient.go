package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// placeholder marks a text that stands for content which was not understood.
const placeholder = "deepseek/placeholder"

// understood is an answer in which the parts of a result, or the tools of a list, that the
// library does not know are replaced: it would throw all of the answer away for one
// of them. What it knows, and what is no answer, stays as it is to the byte,
// its line end included.
func understood(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"content"`)) && !bytes.Contains(message, []byte(`"tools"`)) {
		return message
	}
	var whole, result map[string]json.RawMessage
	if json.Unmarshal(message, &whole) != nil || json.Unmarshal(whole["result"], &result) != nil {
		return message
	}
	changed := replaceParts(result, "content", fits[sdk.CallToolResult], stand)
	if replaceParts(result, "tools", fits[sdk.ListToolsResult], func(json.RawMessage) any {
		return map[string]any{"name": "", "inputSchema": map[string]any{}} // left out, and noted, as one without a name
	}) {
		changed = true
	}
	if !changed {
		return message
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return message
	}
	whole = maps.Clone(whole)
	whole["result"] = raw
	out, err := json.Marshal(whole)
	if err != nil {
		return message
	}
	return append(out, message[len(bytes.TrimRight(message, "\r\n")):]...)
}

// replaceParts puts something else in the place of those parts of a list that are not fit.
func replaceParts(result map[string]json.RawMessage, key string, fit func(key string, list json.RawMessage) bool, stand func(json.RawMessage) any) bool {
	list, ok := result[key]
	if !ok || fit(key, list) {
		return false
	}
	var parts []json.RawMessage
	if json.Unmarshal(list, &parts) != nil {
		return false // no list at all: that breaks the rules
	}
	for i, part := range parts {
		one, err := json.Marshal([]json.RawMessage{part})
		if err == nil && fit(key, one) {
			continue
		}
		if parts[i], err = json.Marshal(stand(part)); err != nil {
			return false
		}
	}
	out, err := json.Marshal(parts)
	if err != nil {
		return false
	}
	result[key] = out
	return true
}

// fits tells whether the library takes the list.
func fits[Result any](key string, list json.RawMessage) bool {
	raw, err := json.Marshal(map[string]json.RawMessage{key: list})
	var r Result
	return err == nil && json.Unmarshal(raw, &r) == nil
}

// stand names a part that is not understood.
func stand(part json.RawMessage) any {
	var kind struct {
		Type string `json:"type"`
	}
	what := "content that is not understood"
	if json.Unmarshal(part, &kind) == nil && kind.Type != "" {
		what = fmt.Sprintf("content of the kind %q", cut(kind.Type, 100))
	}
	return map[string]any{
		"type": "text", "text": fmt.Sprintf("[%s, %d bytes, not shown]", what, len(part)), "_meta": map[string]any{placeholder: true},
	}
}

// lenientBody is understood for the body of an answer over HTTP: one message, or a
// stream of events with a message on each data line. What is below it bounds both. It
// is for one reader.
type lenientBody struct {
	io.ReadCloser
	buf    *bufio.Reader
	events bool
	rest   []byte
	err    error
}

func newLenientBody(body io.ReadCloser, events bool) *lenientBody {
	return &lenientBody{ReadCloser: body, buf: bufio.NewReader(body), events: events}
}

// Read hands out whole lines of a stream as they come, and a message once it is there.
func (l *lenientBody) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		if l.events {
			l.rest, l.err = l.buf.ReadBytes('\n')
			if data, ok := bytes.CutPrefix(l.rest, []byte("data:")); ok {
				l.rest = append([]byte("data:"), understood(data)...)
			}
			continue
		}
		if l.rest, l.err = io.ReadAll(l.buf); l.err == nil {
			l.rest, l.err = understood(l.rest), io.EOF
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
