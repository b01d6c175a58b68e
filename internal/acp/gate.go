package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/session"
)

// longestLine is how long a line may be that comes in, in bytes.
const longestLine = 64 << 20

// longestHanded is how long a line may be that the SDK reads: its connection
// ends at 10 MiB, which is no option of it. Parameters, which may be longer, go
// round it.
const longestHanded = 8 << 20

// cancelRequest is the one notification that the SDK deals with itself.
const cancelRequest = "$/cancel_request"

// lines is where messages come from.
type lines interface {
	// Next is the next line, of one that is too long the beginning; io.EOF: no
	// more come.
	Next() (line []byte, tooLong bool, err error)
}

// gate is the SDK's reader. It hands out the next message only when the handler
// of the last has taken it up, and answers what is no message. What passes
// has been decoded and encoded again, so that the SDK cannot fail on it and
// leave the gate waiting. Parameters do not pass: as there is one message at a
// time, its handler finds them here.
//
// Read is the SDK's reading goroutine's; taken may be called from any. params
// belongs to the reading goroutine until a message is handed out, and to its
// handler until that says taken.
type gate struct {
	in    lines
	wire  *wire
	begin chan struct{} // closed when handlers may be called

	rest    []byte
	params  json.RawMessage // of the message that was handed out last
	waiting bool            // a handler has not taken up the last message
	taken   chan struct{}   // a token: it has
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

type forwarded struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

// version is the protocol's, as every message has it.
const version = `"2.0"`

var noJSON = &sdk.RequestError{Code: codeParse, Message: "the line is no JSON"}

var noVersion = invalidRequest("jsonrpc: must be %s", version)

// take looks at one line and makes of it what the SDK is to read, if anything.
func (g *gate) take(line []byte, tooLong bool) error {
	line = bytes.TrimSpace(line)
	switch {
	case tooLong:
		return g.skip(line)
	case len(line) == 0:
		return nil
	case !utf8.Valid(line), line[0] != '{' && !json.Valid(line):
		return g.wire.refuse(nil, noJSON)
	case line[0] != '{':
		return g.wire.refuse(nil, invalidRequest("a message is an object, and one a line"))
	}
	m, err := membersOf(line)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return g.wire.refuse(nil, noJSON)
	case err != nil:
		return g.wire.refuse(nil, invalidRequest("the message is not understood: %v", session.PlainJSON(err)))
	}
	id, ok := messageID(json.RawMessage(m["id"]))
	method := ""
	versioned := string(m["jsonrpc"]) == version
	switch {
	case m["method"] == nil && (m["result"] != nil || m["error"] != nil):
		return g.answer(m, id, versioned)
	case !ok:
		return g.wire.refuse(nil, invalidRequest("id: must be a string or a number, of at most %d bytes", longestID))
	case !versioned:
		return g.wire.refuse(id, noVersion)
	case m["method"] == nil:
		if err := g.answer(m, id, false); err != nil { // if it was meant as one
			return err
		}
		return g.wire.refuse(id, invalidRequest("method: is missing"))
	case kindOf(m["method"]) != "a string":
		return g.wire.refuse(id, invalidRequest("method: got %s, want a string", kindOf(m["method"])))
	}
	if err := json.Unmarshal(m["method"], &method); err != nil || method == "" {
		return g.wire.refuse(id, invalidRequest("method: is empty"))
	}
	return g.call(id, method, json.RawMessage(m["params"]))
}

// call hands a request or a notification out, without its parameters.
func (g *gate) call(id json.RawMessage, method string, params json.RawMessage) error {
	f := forwarded{JSONRPC: "2.0", ID: id, Method: method, Params: json.RawMessage("{}")}
	withSDK := method == cancelRequest && id == nil
	if withSDK {
		if f.Params = cancelled(params); f.Params == nil {
			return nil // it names no request, and has nobody to be answered to
		}
	}
	out, err := json.Marshal(f)
	if err != nil || len(out) > longestHanded {
		return g.wire.refuse(id, invalidRequest("method: is longer than any there is"))
	}
	if g.waiting = !withSDK; g.waiting {
		g.params = params
	}
	if id != nil {
		g.wire.owe()
	}
	g.rest = append(out, '\n')
	return nil
}

// answer hands the answer to a question out. One that is not understood is an
// error, so that the question ends all the same: nobody is answered to an answer.
func (g *gate) answer(m map[string]member, id json.RawMessage, versioned bool) error {
	f := forwarded{JSONRPC: "2.0", ID: id}
	switch {
	case !versioned:
		f.Error = noVersion
	case m["error"] != nil && string(m["error"]) != "null":
		f.Error = new(sdk.RequestError)
		if json.Unmarshal(m["error"], f.Error) != nil {
			f.Error = &sdk.RequestError{Code: codeInternal, Message: "the client's error is not understood"}
		}
	default:
		if f.Result = json.RawMessage(m["result"]); f.Result == nil {
			f.Result = json.RawMessage("null")
		}
	}
	return g.hand(f)
}

// hand hands an answer out.
func (g *gate) hand(f forwarded) error {
	if f.ID == nil {
		return nil // it says what the client could not read
	}
	out, err := json.Marshal(f)
	if err == nil && len(out) > longestHanded { // no person's answer is so long
		f.Result, f.Error = nil, invalidRequest("the answer is longer than %d bytes", longestHanded)
		out, err = json.Marshal(f)
	}
	if err != nil {
		return err
	}
	g.rest = append(out, '\n')
	return nil
}

// skip answers a line that is too long, by what its beginning tells. An answer
// ends the question that it is for.
func (g *gate) skip(beginning []byte) error {
	id, answers := beginningOf(beginning)
	tooLong := invalidRequest("the line is longer than %d bytes and was skipped", longestLine)
	if answers {
		return g.hand(forwarded{JSONRPC: "2.0", ID: id, Error: tooLong})
	}
	return g.wire.refuse(id, tooLong)
}

// beginningOf reads what the beginning of a message tells: its id, nil if that
// cannot be read or is none, and whether it answers something.
func beginningOf(text []byte) (id json.RawMessage, answers bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for {
		name, err := d.Token()
		if err != nil {
			return id, answers
		}
		switch name {
		case "method", "params":
			answers = false
		case "result", "error":
			answers = true
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || d.InputOffset() == int64(len(text)) {
			return id, answers // the value is cut, or may be
		}
		if name == "id" {
			id, _ = messageID(value)
		}
	}
}

// handed are the parameters of the message that was handed out last. They are
// for its handler, once, before it says that it has taken the message up.
func (g *gate) handed() json.RawMessage {
	params := g.params
	g.params = nil
	if len(params) == 0 || string(params) == "null" {
		return json.RawMessage("{}")
	}
	return params
}

// cancelled is what the SDK needs of a notification that cancels a request; nil
// if that names none.
func cancelled(params json.RawMessage) json.RawMessage {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	id, ok := messageID(p.ID)
	if !ok || id == nil {
		return nil
	}
	out, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	return out
}

// longestID is how long an id may be, in bytes.
const longestID = 256

// messageID is the id, nil if there is none; ok is false if it is no id.
func messageID(raw json.RawMessage) (id json.RawMessage, ok bool) {
	if raw == nil {
		return nil, true
	}
	if c := raw[0]; len(raw) > longestID || c != '"' && c != '-' && (c < '0' || c > '9') {
		return nil, false
	}
	return raw, true
}
