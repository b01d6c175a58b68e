package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
)

// longestLine is how long a line may be that comes in: the SDK's connection
// ends at 10 MiB.
const longestLine = 8 << 20

// cancelRequest is the one notification that the SDK deals with itself.
const cancelRequest = "$/cancel_request"

// lines is where messages come from.
type lines interface {
	// Next is the next line; io.EOF: no more come.
	Next() (line []byte, tooLong bool, err error)
}

// gate is the SDK's reader. It hands out the next message only when the handler
// of the last has taken it up, and answers what is no message. What passes
// has been decoded and encoded again, so that the SDK cannot fail on it and
// leave the gate waiting.
//
// Read is the SDK's reading goroutine's; taken may be called from any.
type gate struct {
	in    lines
	wire  *wire
	begin chan struct{} // closed when handlers may be called

	rest    []byte
	waiting bool          // a handler has not taken up the last message
	taken   chan struct{} // a token: it has
}

func newGate(in lines, w *wire) *gate {
	return &gate{in: in, wire: w, begin: make(chan struct{}), taken: make(chan struct{}, 1)}
}

func (g *gate) Read(p []byte) (int, error) {
	<-g.begin
	for len(g.rest) == 0 {
		if g.waiting {
			<-g.taken
			g.waiting = false
		}
		line, tooLong, err := g.in.Next()
		if err != nil {
			return 0, io.EOF
		}
		if err := g.take(line, tooLong); err != nil {
			return 0, io.EOF // nobody hears anything any more
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// incoming is any message.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type forwarded struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

// take looks at one line and makes of it what the SDK is to read, if anything.
func (g *gate) take(line []byte, tooLong bool) error {
	line = bytes.TrimSpace(line)
	var m incoming
	switch {
	case tooLong:
		return g.wire.refuse(nil, invalidRequest("the line is longer than %d bytes and was skipped", longestLine))
	case len(line) == 0:
		return nil
	case !utf8.Valid(line), !json.Valid(line):
		return g.wire.refuse(nil, &sdk.RequestError{Code: codeParse, Message: "the line is no JSON"})
	case line[0] != '{':
		return g.wire.refuse(nil, invalidRequest("a message is an object, and one a line"))
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return g.wire.refuse(nil, invalidRequest("the message is not understood: %v", err))
	}
	id, ok := messageID(m.ID)
	f := forwarded{JSONRPC: "2.0", ID: id}
	switch {
	case !ok:
		return g.wire.refuse(nil, invalidRequest("id: must be a string or a number"))
	case m.Method != nil && *m.Method == "", m.Method == nil && id == nil:
		return g.wire.refuse(id, invalidRequest("method: is missing"))
	case m.Method != nil:
		f.Method, f.Params = *m.Method, m.Params
		if len(f.Params) == 0 || string(f.Params) == "null" {
			f.Params = json.RawMessage("{}")
		}
	case m.Error != nil && string(m.Error) != "null":
		f.Error = new(sdk.RequestError)
		if json.Unmarshal(m.Error, f.Error) != nil {
			f.Error = &sdk.RequestError{Code: codeInternal, Message: "the client's error is not understood"}
		}
	default:
		if f.Result = m.Result; f.Result == nil {
			f.Result = json.RawMessage("null")
		}
	}
	out, err := json.Marshal(f)
	if err != nil {
		return g.wire.refuse(id, invalidRequest("the message is not understood: %v", err))
	}
	if len(out) > longestLine { // escapes may have made it longer
		return g.wire.refuse(id, invalidRequest("the message is longer than %d bytes", longestLine))
	}
	if f.Method != "" {
		g.waiting = f.Method != cancelRequest || id != nil
		if id != nil {
			g.wire.owe()
		}
	}
	out = append(out, '\n')
	g.rest = out
	return nil
}

// messageID is the id without one that is null; ok is false if it is no id.
func messageID(raw json.RawMessage) (id json.RawMessage, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	c := raw[0]
	return raw, (c == '"' || c == '-' || c >= '0' && c <= '9') && len(raw) <= 256
}
