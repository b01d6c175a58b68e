package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"
)

// refused is the answer to a line that is no request. Its id is that of the
// line, nil where it has none that can be read.
type refused struct {
	id  json.RawMessage
	err *jrpc2.Error
}

func refuseLine(id json.RawMessage, code jrpc2.Code, format string, args ...any) *refused {
	return &refused{id, jrpc2.Errorf(code, format, args...)}
}

// checkLine refuses a line that is no request, whatever it asks for. Blank lines
// pass, without members.
func checkLine(line inLine, longest int) (map[string]member, *refused) {
	text := bytes.TrimSpace(line.text)
	switch {
	case line.tooLong:
		return nil, refuseLine(RequestID(line.text), jrpc2.InvalidRequest, "the line is longer than %d bytes and was skipped", longest)
	case len(text) == 0:
		return nil, nil
	case !utf8.Valid(text):
		return nil, refuseLine(nil, jrpc2.ParseError, "the line is not UTF-8")
	case text[0] != '{' && !json.Valid(text):
		return nil, refuseLine(nil, jrpc2.ParseError, "the line is no JSON: %v", json.Unmarshal(text, new(json.RawMessage)))
	case text[0] == '[':
		return nil, refuseLine(nil, jrpc2.InvalidRequest, "batches are not served: send one request a line")
	case text[0] != '{':
		return nil, refuseLine(nil, jrpc2.InvalidRequest, "a request is an object, got %s", kindOfJSON(text))
	}
	return checkRequest(text)
}

// member is the JSON of one member, not copied from its line.
type member []byte

// UnmarshalJSON implements json.Unmarshaler.
func (m *member) UnmarshalJSON(b []byte) error {
	*m = b
	return nil
}

// checkRequest reads the members of a request, and looks at those that say what is
// asked, and by whom. Its parameters are for the method's handler.
func checkRequest(object []byte) (map[string]member, *refused) {
	var m map[string]member
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(object, &m); {
	case errors.As(err, &syntax):
		return nil, refuseLine(nil, jrpc2.ParseError, "the line is no JSON: %v", err)
	case err != nil:
		return nil, refuseLine(nil, jrpc2.InvalidRequest, "the request is not understood: %v", err)
	}
	id, named := m["id"]
	if kind := kindOfJSON(id); named && kind != "a string" && kind != "a number" {
		return nil, refuseLine(nil, jrpc2.InvalidRequest, "id: must be a string or a number, is %s", kind)
	}
	if version := m["jsonrpc"]; string(version) != `"`+jrpc2.Version+`"` {
		return nil, refuseLine(json.RawMessage(id), jrpc2.InvalidRequest, "jsonrpc: must be %q, is %s", jrpc2.Version, clip(orNothing(version)))
	}
	if method := m["method"]; kindOfJSON(method) != "a string" {
		return nil, refuseLine(json.RawMessage(id), jrpc2.InvalidRequest, "method: must be a string, is %s", kindOfJSON(method))
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch name {
		case "jsonrpc", "id", "method", "params":
		default:
			return nil, refuseLine(json.RawMessage(id), jrpc2.InvalidRequest, "%s: unknown; known are id, jsonrpc, method, params", clip([]byte(name)))
		}
	}
	return m, nil
}

func orNothing(m member) []byte {
	if m == nil {
		return []byte(kindOfJSON(nil))
	}
	return m
}

// withoutParams is a request without its parameters, and these apart, nil if it has
// none: the server would copy them several times, and refuse what is neither an
// object nor an array before it looks whether there is such a method.
func withoutParams(m map[string]member) (line, params []byte) {
	line = append(line, `{"jsonrpc":"`+jrpc2.Version+`","method":`...)
	line = append(line, m["method"]...)
	if id, ok := m["id"]; ok {
		line = append(append(line, `,"id":`...), id...)
	}
	if params = m["params"]; kindOfJSON(params) == "null" {
		params = nil
	}
	return append(line, '}'), params
}

// RequestID is the id of a request of which no more than the beginning is there,
// nil if that has none that is a string or a number.
func RequestID(beginning []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(beginning))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil || dec.InputOffset() == int64(len(beginning)) {
			return nil // cut, or perhaps
		}
		if name != "id" {
			continue
		}
		if kind := kindOfJSON(value); kind != "a string" && kind != "a number" {
			return nil
		}
		return value
	}
}
