package remote

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/creachadair/jrpc2"

	"deepseek/internal/question"
)

// codeDomain is the JSON-RPC code of a refusal; which one it is stands in data.code.
const codeDomain jrpc2.Code = -32000

// Codes of refusals that this package makes itself.
const (
	CodeSessionNotFound = "SESSION_NOT_FOUND"
	CodeReadOnlyWait    = "READ_ONLY_WAIT" // an approval that only the owner's side may answer
	CodeCallerIsTool    = "CALLER_IS_TOOL"
	CodeOtherUser       = "OTHER_USER"
	CodeTooManyClients  = "TOO_MANY_CLIENTS"
	CodeClientTooSlow   = "CLIENT_TOO_SLOW"
	CodeClientSilent    = "CLIENT_SILENT"
	CodeFollowFailed    = "FOLLOW_FAILED"
)

// Codes that have a meaning here and are made elsewhere.
const (
	CodeNoClaim      = question.CodeNoClaim
	CodeOwnerLeaving = "OWNER_LEAVING"
)

// Names for the errors that JSON-RPC numbers.
const (
	CodeParse          = "PARSE_ERROR"
	CodeInvalidRequest = "INVALID_REQUEST"
	CodeMethodNotFound = "METHOD_NOT_FOUND"
	CodeInvalidParams  = "INVALID_PARAMS"
	CodeInternal       = "INTERNAL"
)

// Error is a refusal: the other side understood the request and says no.
// Nothing was done.
type Error struct {
	Code    string // a word in capitals
	Message string
	Path    string // of INVALID_PARAMS: the parameter
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Coder is an error that is a refusal and has a code of its own.
type Coder interface {
	error
	Code() string
}

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errorData is the data of an error object.
type errorData struct {
	Code string `json:"code,omitempty"`
	Path string `json:"path,omitempty"`
}

// wire is an error as the protocol shows it.
func wire(err error) *jrpc2.Error {
	var (
		rpc *jrpc2.Error
		own *Error
		ask *question.Error
		c   Coder
	)
	switch {
	case errors.As(err, &rpc):
		return rpc
	case errors.As(err, &own):
		if own.Code == CodeInvalidParams {
			return (&jrpc2.Error{Code: jrpc2.InvalidParams, Message: own.Message}).WithData(errorData{Path: own.Path})
		}
		return (&jrpc2.Error{Code: codeDomain, Message: own.Message}).WithData(errorData{Code: own.Code})
	case errors.As(err, &ask):
		return (&jrpc2.Error{Code: codeDomain, Message: ask.Message}).WithData(errorData{Code: ask.Code})
	case errors.As(err, &c):
		return (&jrpc2.Error{Code: codeDomain, Message: c.Error()}).WithData(errorData{Code: c.Code()})
	}
	return &jrpc2.Error{Code: jrpc2.InternalError, Message: err.Error()}
}

// fromWire is what a client makes of an error object.
func fromWire(e *jrpc2.Error) *Error {
	var data errorData
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &data) != nil {
		data = errorData{} // data of another shape, which says nothing to us
	}
	names := map[jrpc2.Code]string{
		jrpc2.ParseError: CodeParse, jrpc2.InvalidRequest: CodeInvalidRequest,
		jrpc2.MethodNotFound: CodeMethodNotFound, jrpc2.InvalidParams: CodeInvalidParams,
	}
	code := data.Code
	if code == "" {
		code = names[e.Code]
	}
	if code == "" {
		code = CodeInternal
	}
	return &Error{Code: code, Message: e.Message, Path: data.Path}
}

// errorLine is an error that answers a line; nil: no request in particular.
func errorLine(id json.RawMessage, e *jrpc2.Error) []byte {
	line, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jrpc2.Error    `json:"error"`
	}{jrpc2.Version, id, e})
	if err != nil { // the parts of an error object are valid JSON
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return line
}
