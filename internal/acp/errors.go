package acp

import (
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/remote"
)

// Codes of JSON-RPC and of the protocol.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeAuth           = -32000
	codeNotFound       = -32002
	codeCancelled      = -32800
)

// errorData is the data of an error: the word by which the product knows it.
type errorData struct {
	Code   string `json:"code,omitempty"`
	Path   string `json:"path,omitempty"`
	Status int    `json:"status,omitempty"` // of HTTP
}

func invalidRequest(format string, args ...any) *sdk.RequestError {
	return &sdk.RequestError{Code: codeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

func invalidParams(path, format string, args ...any) *sdk.RequestError {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	return &sdk.RequestError{Code: codeInvalidParams, Message: message, Data: errorData{Path: path}}
}

// requestError is an error as the editor shows it: its message says what
// happened, and not just that something did.
func requestError(err error) *sdk.RequestError {
	var (
		own   *sdk.RequestError
		auth  *AuthError
		far   *remote.Error
		coder remote.Coder
		asked *question.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &auth):
		return &sdk.RequestError{Code: codeAuth, Message: auth.Message}
	case errors.As(err, &far):
		e := &sdk.RequestError{Code: codeInternal, Message: far.Message, Data: errorData{Code: far.Code, Path: far.Path}}
		switch far.Code {
		case remote.CodeInvalidParams:
			e.Code, e.Data = codeInvalidParams, errorData{Path: far.Path}
		case remote.CodeSessionNotFound:
			e.Code = codeNotFound
		}
		return e
	case errors.As(err, &asked):
		return &sdk.RequestError{Code: codeInternal, Message: asked.Message, Data: errorData{Code: asked.Code}}
	case errors.As(err, &coder):
		return &sdk.RequestError{Code: codeInternal, Message: coder.Error(), Data: errorData{Code: coder.Code()}}
	}
	return &sdk.RequestError{Code: codeInternal, Message: err.Error()}
}

// isLeaving tells whether the session refuses because it is being left.
func isLeaving(err error) bool {
	var far *remote.Error
	return errors.As(err, &far) && far.Code == remote.CodeOwnerLeaving
}
