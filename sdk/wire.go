package deepseek

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
)

// encode is JSON that spends no bytes on what only HTML would need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

type (
	incoming struct {
		ID     *json.RawMessage `json:"id"`
		Method string           `json:"method"`
		Params json.RawMessage  `json:"params"`
		Result json.RawMessage  `json:"result"`
		Error  *refusal         `json:"error"`
	}
	refusal struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Code string `json:"code"`
			Path string `json:"path"`
		} `json:"data"`
	}
)

func (r *refusal) err() *RefusedError {
	code := r.Data.Code
	if code == "" {
		code = names[r.Code]
	}
	return &RefusedError{Code: code, Message: r.Message, Path: r.Data.Path}
}

// unnamed takes an error that names no request. Requests are answered in the order
// sent, so a line that was not understood is the oldest one that has no answer;
// anything else is about the connection and its last line: io.EOF.
func (c *connection) unnamed(r *refusal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest := slices.Min(append(slices.Collect(maps.Keys(c.pending)), c.lastID+1))
	p := c.pending[oldest]
	if p == nil || r.Code != codeParse && r.Code != codeInvalidRequest {
		c.reason = r.err().Error()
		return io.EOF
	}
	delete(c.pending, oldest)
	p.done <- r.err()
	return nil
}

// Errors of lines that are no requests.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
)

var names = map[int]string{
	codeParse: "PARSE_ERROR", codeInvalidRequest: "INVALID_REQUEST", -32601: "METHOD_NOT_FOUND", -32602: "INVALID_PARAMS", -32603: "INTERNAL",
}
