// Package model says what a model is to the rest of the program: something
// that is sent a history and streams one message back. The retry policy lives
// here, in one place; the wires live in the folders below.
package model

import (
	"context"
	"fmt"
	"time"

	"deepseek/internal/session"
)

// Model answers requests. It is safe for concurrent use.
type Model interface {
	// Generate makes one attempt. It calls sink, on the caller's goroutine,
	// with each piece as it arrives; sink may be nil. When ctx ends it returns
	// the text, reasoning and usage that had arrived, without calls, together
	// with ctx's error. Every other failure is an *Error and the response is
	// empty. It leaves no goroutine behind, nor a connection in use.
	Generate(ctx context.Context, req Request, sink func(Delta)) (Response, error)
	Provider() string // "deepseek", "script" or "demo"
}

// Request is one request. Its parts are read only.
type Request struct {
	Config      session.RequestConfig
	System      string
	Messages    []session.Message
	Tools       []session.ToolSpec
	Adaptations []string // what a server was found to need, from session/settings, oldest first
	Committed   int      // requests of this session that have committed so far
}

// Delta is a streamed piece of text.
type Delta struct {
	Kind string // session.BlockText or session.BlockReasoning
	Text string
}

// Response is one whole answer.
type Response struct {
	Text      string
	Reasoning string
	Calls     []session.Call // in the model's order; ids as they came, may be empty or repeated
	Finish    Finish
	Usage     *session.Usage // without cost; nil where the server sent none
}

// Finish says why the model stopped. All other reasons are errors.
type Finish string

// The finishes of a good response.
const (
	FinishStop      Finish = "stop"
	FinishToolCalls Finish = "tool_calls"
	FinishLength    Finish = "length" // its tool calls have been dropped
)

// Error is a failed attempt.
type Error struct {
	Code       string        // below
	Message    string        // the server's own words where there are any; never holds the key
	Status     int           // of HTTP, 0 where none
	RetryAfter time.Duration // asked for by the server, 0 where not
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d)", e.Code, e.Message, e.Status)
	}
	return e.Code + ": " + e.Message
}

// Codes of failed attempts. A content filter, insufficient resources and
// unknown finish reasons carry the server's word as code.
const (
	CodeAuth            = "AUTH"
	CodeQuota           = "QUOTA"
	CodeRateLimit       = "RATE_LIMIT"
	CodeContextWindow   = "CONTEXT_WINDOW_EXCEEDED"
	CodeInvalidRequest  = "INVALID_REQUEST"
	CodeServer          = "SERVER"
	CodeTimeout         = "TIMEOUT"
	CodeTransport       = "TRANSPORT"
	CodeProxy           = "PROXY" // a proxy on the way refuses
	CodeEmptyResponse   = "EMPTY_RESPONSE"
	CodeStreamClosed    = "STREAM_CLOSED"
	CodeMalformed       = "MALFORMED_RESPONSE"
	CodeScriptExhausted = "SCRIPT_EXHAUSTED"
)
