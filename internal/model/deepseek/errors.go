package deepseek

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"deepseek/internal/model"
)

// serverError is an error as servers word it, in a body or in a stream.
type serverError struct {
	message string
	kind    string // "type" and "code", if they are words
	status  int    // if "code" is one, else 0
}

// readServerError finds an error in a JSON object: {"error":{…}}, {"error":"…"},
// {"object":"error","message":…}, {"message":…} or {"detail":…}.
func readServerError(raw []byte) (serverError, bool) {
	var w struct {
		Error, Detail, Message, Type, Code json.RawMessage
	}
	if json.Unmarshal(raw, &w) != nil {
		return serverError{}, false
	}
	if present(w.Error) && w.Error[0] == '{' {
		e := w.Error
		w.Message = nil
		if json.Unmarshal(e, &w) != nil {
			return serverError{}, false
		}
		if asText(w.Message) == "" && len(e) > len("{}") {
			w.Message = e
		}
	} else if present(w.Error) && string(w.Error) != "false" {
		w.Message = w.Error
	} else if !present(w.Message) {
		w.Message = w.Detail
	}
	e := serverError{message: asText(w.Message)}
	if e.message == "" {
		return serverError{}, false
	}
	code := asText(w.Code)
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		e.status = n
	}
	e.kind = strings.TrimSpace(asText(w.Type) + " " + code)
	return e, true
}

// Members of an object that was cut off: the value may have no end.
var (
	cutMessage = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:message|detail|error|msg)"\s*:\s*"((?:[^"\\]|\\(?:u[0-9A-Fa-f]{4}|[^u]))*)`)
	})
	cutKind = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:type|code)"\s*:\s*"?([A-Za-z0-9_.-]{1,80})`) })
)

// readCutError finds an error in the beginning of a JSON object that was too
// long, or too slow, to be read whole.
func readCutError(raw []byte) (serverError, bool) {
	raw = bytes.TrimSpace(raw)
	if !bytes.HasPrefix(raw, []byte("{")) || json.Valid(raw) {
		return serverError{}, false
	}
	m := cutMessage().FindSubmatch(raw)
	if m == nil {
		return serverError{}, false
	}
	text, ok := unquote(string(m[1]))
	var j joiner
	text = strings.TrimSpace(j.add(text))
	if !ok || text == "" {
		return serverError{}, false
	}
	e := serverError{message: text}
	for _, k := range cutKind().FindAllSubmatch(raw, 2) {
		e.kind = strings.TrimSpace(e.kind + " " + string(k[1]))
	}
	return e, true
}

// asText is a string's content, or any other value as it stands.
func asText(raw json.RawMessage) string {
	if !present(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	return string(raw)
}

// Words by which servers say what the status does not.
var (
	balanceWords = []string{"insufficient balance", "insufficient_balance", "insufficient_quota", "insufficient quota", "insufficient credit", "exceeded your current quota", "balance is insufficient", "balance is not enough", "out of credit", "account balance"}
	windowWords  = []string{"context length", "context_length", "context window", "context size", "context_window", "exceed_context", "maximum context", "prompt is too long", "prompt too long", "input is too long", "too many input tokens", "reduce the length of the messages"}
	limitWords   = []string{"rate limit", "rate_limit", "ratelimit", "too many requests", "too_many_requests"}
	authWords    = []string{"authentication", "invalid api key", "invalid_api_key", "unauthorized", "permission_denied", "permission denied"}
	requestWords = []string{"invalid_request", "invalid request", "badrequest", "bad_request", "bad request", "unprocessable"}
	timeoutWords = []string{"timed out", "timeout"}
)

// code names an error by its status, if there is one, and its words.
func (e serverError) code(status int) string {
	if status == 0 {
		status = e.status
	}
	text := strings.ToLower(e.kind + " " + e.message)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusPaymentRequired, has(balanceWords):
		return model.CodeQuota
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.CodeAuth
	case status == http.StatusTooManyRequests:
		return model.CodeRateLimit
	case has(windowWords):
		return model.CodeContextWindow
	case status == http.StatusRequestTimeout:
		return model.CodeTimeout
	case status >= 500:
		return model.CodeServer
	case status >= 300:
		return model.CodeInvalidRequest
	// No status: an error in the middle of a stream.
	case has(limitWords):
		return model.CodeRateLimit
	case has(authWords):
		return model.CodeAuth
	case has(requestWords):
		return model.CodeInvalidRequest
	case has(timeoutWords):
		return model.CodeTimeout
	}
	return model.CodeServer
}

// httpError words a refused request.
func (a *Adapter) httpError(res *http.Response, body []byte) *model.Error {
	e, ok := readServerError(body)
	if !ok {
		e, ok = readCutError(body)
	}
	if !ok {
		e.message = asWords(string(bytes.TrimSpace(body)))
		if isPage(e.message) {
			e.message = pageTitle(e.message)
		}
	}
	out := &model.Error{Status: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"), a.cfg.Now())}
	out.Code = e.code(res.StatusCode)
	out.Message = a.clean(e.message)
	switch {
	case res.StatusCode < 300:
		out.Code, out.Message = model.CodeMalformed, "the server answered with "+res.Status+" instead of a stream"
	case res.StatusCode < 400:
		out.Message = a.clean("the server redirects to " + redirectTarget(res) + ", which was not followed: the key goes nowhere but to the configured server. Set base_url to the right address.")
	case res.StatusCode == http.StatusProxyAuthRequired: // of the proxy, where the server is asked without TLS
		out = wantsLogin(a.proxyOf(res.Request), res)
		out.Message = a.clean(out.Message)
	case out.Message == "":
		out.Message = "the server answered " + a.clean(res.Status) + " without a word"
	}
	return out
}

func redirectTarget(res *http.Response) string {
	u, err := res.Location()
	if err != nil {
		return "an address that cannot be read"
	}
	return u.Scheme + "://" + u.Host + u.Path
}
