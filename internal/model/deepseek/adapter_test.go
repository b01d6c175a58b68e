package deepseek_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deepseek/internal/fakellm"
	"deepseek/internal/model"
	"deepseek/internal/model/deepseek"
	"deepseek/internal/session"
)

const key = "sk-test-SECRETSECRET"

func request(msgs ...session.Message) model.Request {
	if len(msgs) == 0 {
		msgs = []session.Message{{Role: session.RoleUser, Text: "hi"}}
	}
	return model.Request{Config: session.RequestConfig{Model: "m"}, Messages: msgs}
}

func adapter(t *testing.T, base string) *deepseek.Adapter {
	t.Helper()
	a := deepseek.New(deepseek.Config{BaseURL: base, Key: key, Now: func() time.Time {
		return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	}})
	t.Cleanup(a.Close)
	return a
}

func TestHTTPErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		header map[string]string
		code   string
		says   string
		after  time.Duration
	}{
		{name: "bad key, echoed", status: 401, body: `{"error":{"message":"key ` + key + ` is\nno\u001b[31m good"}}`, code: model.CodeAuth, says: `key [key] is no\x1b[31m good`},
		{name: "forbidden", status: 403, body: `no`, code: model.CodeAuth, says: "no"},
		{name: "no money", status: 402, body: `{"error":{"message":"Insufficient Balance"}}`, code: model.CodeQuota, says: "Insufficient Balance"},
		{name: "no money by text", status: 429, body: `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, code: model.CodeQuota},
		{name: "too fast, seconds", status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"error":"slow down"}`, code: model.CodeRateLimit, says: "slow down", after: 7 * time.Second},
		{name: "too fast, date", status: 429, header: map[string]string{"Retry-After": "Sat, 01 Aug 2026 12:00:30 GMT"}, code: model.CodeRateLimit, says: "without a word", after: 30 * time.Second},
		{name: "date gone by", status: 503, header: map[string]string{"Retry-After": "Sat, 01 Aug 2026 11:00:30 GMT"}, code: model.CodeServer},
		{name: "a silly number", status: 503, header: map[string]string{"Retry-After": "1e300"}, code: model.CodeServer, after: 365 * 24 * time.Hour},
		{name: "no number", status: 503, header: map[string]string{"Retry-After": "NaN"}, code: model.CodeServer},
		{name: "context", status: 400, body: `{"error":{"message":"This model's maximum context length is 131072 tokens"}}`, code: model.CodeContextWindow},
		{name: "context, too large", status: 413, body: `{"error":{"message":"prompt is too long"}}`, code: model.CodeContextWindow},
		{name: "bad request", status: 400, body: `{"detail":[{"msg":"field required"}]}`, code: model.CodeInvalidRequest, says: "field required"},
		{name: "unprocessable", status: 422, body: `{"message":"nope"}`, code: model.CodeInvalidRequest, says: "nope"},
		{name: "not found", status: 404, body: `404 page not found`, code: model.CodeInvalidRequest, says: "404 page not found"},
		{name: "no balance, as a failure of the server", status: 500, body: `{"error":{"message":"Insufficient Balance"}}`, code: model.CodeQuota, says: "Insufficient Balance"},
		{name: "server", status: 500, body: `<html><head><title>Oops</title></head></html>`, code: model.CodeServer, says: "a web page instead of an answer: Oops"},
		{name: "gateway", status: 502, body: strings.Repeat("é", 2000), code: model.CodeServer, says: strings.Repeat("é", 500) + "…"},
		{name: "packed, unasked", status: 500, body: packed(`{"error":{"message":"out of order"}}`), header: map[string]string{"Content-Encoding": "gzip"}, code: model.CodeServer, says: "out of order"},
		{name: "packed so that it cannot be read", status: 500, body: "\x1b\x0e\x00\xf8\x8d\x94\x6e\xde\x81\x02\xff\xfe", code: model.CodeServer, says: "12 bytes that are no text"},
		{name: "half of a pack", status: 500, body: packed(`{"error":{"message":"out of order"}}`)[:10], code: model.CodeServer, says: "10 bytes that are no text"},
		{name: "an old encoding", status: 500, body: "der Server ist ausgefallen, bitte sp\xe4ter", code: model.CodeServer, says: "der Server ist ausgefallen"},
		{name: "an error longer than what is read", status: 400, body: `{"error":{"message":"tokens: maximum context length, ` + strings.Repeat("x", 100_000) + `","type":"invalid_request_error"}}`, code: model.CodeContextWindow, says: "tokens: maximum context length, xxx"},
		{name: "an error with a long tail", status: 429, body: `{"error":{"code":"insufficient_quota","message":"no \"more\"","trace":"` + strings.Repeat("x", 100_000) + `"}}`, code: model.CodeQuota, says: `no "more"`},
		{name: "no content", status: 204, code: model.CodeMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Status: tt.status, Body: tt.body, Headers: tt.header}}})
			res, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil)
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, %v", res, err)
			}
			if e.Code != tt.code || e.Status != tt.status || e.RetryAfter != tt.after || !strings.Contains(e.Message, tt.says) || e.Message == "" {
				t.Errorf("got %s, %d, %s: %s", e.Code, e.Status, e.RetryAfter, e.Message)
			}
			if strings.Contains(e.Error(), key) || len([]rune(e.Message)) > 501 {
				t.Errorf("message %q", e.Message)
			}
		})
	}
}

// packed is s as gzip packs it.
func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s) // to memory: neither fails
	_ = z.Close()
	return b.String()
}

// A stream that was packed unasked is read; the request asks for no packing.
func TestPackedStreams(t *testing.T) {
	how := "gzip"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q", got)
		}
		w.Header().Set("Content-Encoding", how)
		_, _ = io.WriteString(w, packed(fakellm.Delta(map[string]any{"content": "a"}, "stop")+fakellm.Done))
	}))
	defer srv.Close()
	if res, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil); err != nil || res.Text != "a" {
		t.Errorf("got %+v, %v", res, err)
	}
	how = "br"
	_, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeMalformed || !strings.Contains(e.Message, "packed") {
		t.Errorf("got %v", err)
	}
}

func TestAKeyCutByTheBodyLimitIsNotShown(t *testing.T) {
	body := strings.Repeat(" ", 64<<10-8) + key
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Status: 400, Body: body}}})
	_, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil)
	if err == nil || strings.Contains(err.Error(), key[:4]) {
		t.Errorf("got %v", err)
	}
}

func TestBaseURLs(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "a"}}, RepeatLast: true})
	for suffix, path := range map[string]string{"": "/chat/completions", "/": "/chat/completions", "/v1": "/v1/chat/completions", "/v1/": "/v1/chat/completions"} {
		if _, err := adapter(t, srv.URL+suffix).Generate(t.Context(), request(), nil); err != nil {
			t.Fatal(err)
		}
		reqs := srv.Requests()
		if got := reqs[len(reqs)-1].Path; got != path {
			t.Errorf("base %q: path %s", suffix, got)
		}
	}
	h := srv.Requests()[0].Header
	if h.Get("Authorization") != "Bearer "+key || h.Get("Accept") != "text/event-stream" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	for _, bad := range []string{"ftp://x", "x", "http://", "http://a b", "http://127.0.0.1:99999", "http://user:pass@127.0.0.1:1", srv.URL + "/v1/chat/completions"} {
		_, err := adapter(t, bad).Generate(t.Context(), request(), nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Code != model.CodeInvalidRequest || strings.Contains(e.Message, "pass@") {
			t.Errorf("base %q: %v", bad, err)
		}
	}
}

func TestABadKeyIsNotSent(t *testing.T) {
	a := deepseek.New(deepseek.Config{BaseURL: "http://127.0.0.1:1", Key: "sk-\nx"})
	_, err := a.Generate(t.Context(), request(), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeAuth || strings.Contains(e.Message, "sk-") {
		t.Errorf("got %v", err)
	}
}

// A conversation against the strict server: everything that it checks, and the
// usage, the reasoning and the ids.
func TestConversation(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{
		{Reasoning: "let me see", Calls: []fakellm.Call{{ID: "c1", Name: "read", Arguments: `{"file_path":"a"}`}, {ID: "c2", Name: "read", Arguments: `{"broken`}}},
		{Text: "the end", Usage: &fakellm.Usage{Prompt: 50, Cached: 30, Completion: 9, Reasoning: 4}},
	}})
	a := adapter(t, srv.URL)
	msgs := []session.Message{{Role: session.RoleUser, Text: "go"}}
	var streamed strings.Builder
	res, err := a.Generate(t.Context(), request(msgs...), func(d model.Delta) { streamed.WriteString(d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	if res.Reasoning != "let me see" || streamed.String() != res.Reasoning || len(res.Calls) != 2 || res.Calls[1].Arguments != `{"broken` {
		t.Fatalf("got %+v", res)
	}
	msgs = append(msgs, session.Message{Role: session.RoleAssistant, Reasoning: res.Reasoning, Calls: res.Calls},
		session.Message{Role: session.RoleTool, CallID: "c1"}, session.Message{Role: session.RoleTool, CallID: "c2", Text: "INVALID_ARGUMENTS: at byte 8"})
	res, err = a.Generate(t.Context(), request(msgs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (session.Usage{InputTokens: 20, CacheReadTokens: 30, OutputTokens: 9, ReasoningTokens: 4}); res.Text != "the end" || *res.Usage != want {
		t.Errorf("got %+v %+v", res, res.Usage)
	}
}

func TestConnectionIsReused(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "a"}}, RepeatLast: true})
	var dials atomic.Int32
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	a := deepseek.New(deepseek.Config{BaseURL: srv.URL, Client: &http.Client{Transport: tr}})
	defer a.Close()
	for range 3 {
		if _, err := a.Generate(t.Context(), request(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections for three requests", n)
	}
}

func TestBrokenConnections(t *testing.T) {
	for cut, code := range map[fakellm.Cut]string{
		fakellm.CutEnd: model.CodeStreamClosed, fakellm.CutClose: model.CodeStreamClosed, fakellm.CutReset: model.CodeTransport,
	} {
		srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "some text", Cut: cut, CutAt: 400}}})
		_, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: got %v", cut, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = adapter(t, "http://"+l.Addr().String()).Generate(t.Context(), request(), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeTransport || !strings.Contains(e.Message, "refused") {
		t.Errorf("nobody listens: got %v", err)
	}
}

// The key and the conversation stay with the server that was configured.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	var target string
	mux := http.NewServeMux()
	mux.HandleFunc("/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil || !json.Valid(body.Bytes()) || r.Header.Get("Authorization") == "" {
			t.Errorf("redirected without key or body: %v", err)
		}
		_, _ = w.Write([]byte(fakellm.Delta(map[string]any{"content": "a"}, "stop") + fakellm.Done))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()

	target = srv.URL + "/moved"
	if res, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil); err != nil || res.Text != "a" {
		t.Errorf("same host: %v, %v", res, err)
	}
	target = other.URL + "/x"
	_, err := adapter(t, srv.URL).Generate(t.Context(), request(), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeInvalidRequest || !strings.Contains(e.Message, other.URL) {
		t.Errorf("another host: %v", err)
	}
}

func TestCancelReturnsWhatHadArrived(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "hello there", Chunk: 5, Hold: true, HoldAt: 450}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := adapter(t, srv.URL).Generate(ctx, request(), func(d model.Delta) {
		if d.Text == "hello" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(res.Text, "hello") || res.Finish != "" {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := adapter(t, srv.URL).Generate(ctx, request(), nil); !errors.Is(err, context.Canceled) || len(srv.Requests()) != 1 {
		t.Errorf("a request was sent with a dead context: %v", err)
	}
}

func TestCancelWhileWaitingForHeaders(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "x", Hold: true}}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = srv.Wait(t.Context(), 1)
		cancel()
	}()
	if _, err := adapter(t, srv.URL).Generate(ctx, request(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
