package deepseek

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// pipeServer answers requests over pipes, so that a bubble's clock rules the
// network too. It returns a client, and ends with the bubble: a goroutine that
// an attempt left behind would keep the bubble from ending.
func pipeServer(t *testing.T, h http.HandlerFunc) *http.Client {
	conns, closed := make(chan net.Conn), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server notices that its client has gone only after the body.
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		h(w, r)
	})}
	go func() { _ = srv.Serve(&pipeListener{conns, closed}) }()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case conns <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return &http.Client{Transport: tr}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// say writes and flushes; a client that has gone is no matter.
func say(w http.ResponseWriter, s string) {
	_, _ = io.WriteString(w, s)
	_ = http.NewResponseController(w).Flush()
}

// pause waits like a slow server, but no longer than its client.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func TestClocks(t *testing.T) {
	const minute = time.Minute
	ok := func(w http.ResponseWriter) { say(w, last("stop")+done) }
	keepAlive := func(w http.ResponseWriter, r *http.Request, d time.Duration) {
		for ; d > 0; d -= minute {
			pause(r, minute)
			say(w, ": keep-alive\n\n")
		}
	}
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		took   time.Duration
		says   string // of a TIMEOUT, or of the error that begins with its code; "" = success
	}{
		{"no headers", func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }, 2 * minute, "no response headers within 2m0s"},
		{"silence", func(w http.ResponseWriter, r *http.Request) { say(w, delta(`{"content":"a"}`)); pause(r, time.Hour) }, 2 * minute, "silent for 2m0s"},
		{"keep-alives re-arm the byte clock", func(w http.ResponseWriter, r *http.Request) {
			say(w, ": hello\n\n")
			keepAlive(w, r, 9*minute)
			say(w, delta(`{"content":"a"}`))
			ok(w)
		}, 9 * minute, ""},
		{"but not the one for the first content", func(w http.ResponseWriter, r *http.Request) {
			say(w, ": hello\n\n")
			keepAlive(w, r, time.Hour)
		}, 10 * minute, "no content"},
		{"after content the bound is shorter", func(w http.ResponseWriter, r *http.Request) {
			say(w, delta(`{"content":"a"}`))
			keepAlive(w, r, time.Hour)
		}, 5 * minute, "no content"},
		{"an empty delta is no content", func(w http.ResponseWriter, r *http.Request) {
			for range 60 {
				say(w, delta(`{"role":"assistant","content":""}`))
				pause(r, minute)
			}
		}, 10 * minute, "no content"},
		{"reasoning, text and calls are content", func(w http.ResponseWriter, r *http.Request) {
			for _, d := range []string{delta(`{"reasoning_content":"a"}`), delta(`{"content":"a"}`), tools(`[{"index":0,"id":"c","function":{"name":"x"}}]`), tools(`[{"index":0,"function":{"arguments":"{}"}}]`)} {
				say(w, d)
				keepAlive(w, r, 4*minute)
			}
			ok(w)
		}, 16 * minute, ""},
		{"an error body that never ends", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			say(w, "")
			pause(r, time.Hour)
		}, errorBodyTime, "SERVER: the server answered 500 Internal Server Error without a word"},
		{"an error body that breaks off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(429)
			say(w, `{"error":{"message":"slow do`)
			pause(r, time.Hour)
		}, errorBodyTime, "RATE_LIMIT: slow do (HTTP 429)"},
		{"an error body that trickles", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			for r.Context().Err() == nil {
				say(w, "x")
				pause(r, 700*time.Millisecond)
			}
		}, errorBodyTime, "SERVER: xxxxxxxx (HTTP 503)"},
		{"a server that keeps the stream open after DONE costs a moment only", func(w http.ResponseWriter, r *http.Request) {
			say(w, delta(`{"content":"a"}`))
			ok(w)
			pause(r, time.Hour)
		}, drainWait, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Config{BaseURL: "http://pipe", Client: pipeServer(t, tt.handle)})
				start := time.Now()
				res, err := a.Generate(t.Context(), model.Request{Config: session.RequestConfig{Model: "m"}}, nil)
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				var e *model.Error
				switch {
				case tt.says == "" && err != nil:
					t.Errorf("got %v", err)
				case strings.Contains(tt.says, ": "):
					if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
						t.Errorf("got %v, want %s", err, tt.says)
					}
				case tt.says != "" && (!errors.As(err, &e) || e.Code != model.CodeTimeout || !strings.Contains(e.Message, tt.says)):
					t.Errorf("got %+v, %v", res, err)
				}
			})
		})
	}
}

// A screen that is slow to draw must not look like a silent server.
func TestTimeInTheSinkIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Config{BaseURL: "http://pipe", Client: pipeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			say(w, delta(`{"content":"a"}`)+delta(`{"content":"b"}`))
			say(w, last("stop")+done)
		})})
		res, err := a.Generate(t.Context(), model.Request{}, func(model.Delta) { time.Sleep(130 * time.Second) })
		if err != nil || res.Text != "ab" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// The bubble ends only if nothing of the attempt runs on.
func TestCancelLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, delta(`{"content":"a"}`)+tools(`[{"index":0,"id":"c","function":{"name":"x","arguments":"{}"}}]`))
			pause(r, time.Hour)
		})
		a := New(Config{BaseURL: "http://pipe", Client: client})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		res, err := a.Generate(ctx, model.Request{}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || res.Text != "a" || res.Calls != nil {
			t.Errorf("got %+v, %v", res, err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}
