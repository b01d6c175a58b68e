package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// web is the link to an address.
type web struct {
	transport *http.Transport
	ctx       context.Context // ends all requests
	cancel    context.CancelFunc
	headers   map[string]string
	max       int // bytes of an answer

	mu  sync.Mutex
	bad error // what the server did wrong
}

// overHTTP prepares the server's address; nothing is sent yet.
func (s *server) overHTTP() (link, sdk.Transport) {
	w := &web{headers: s.conf.Headers, max: s.family.max}
	w.transport = http.DefaultTransport.(*http.Transport).Clone()
	w.ctx, w.cancel = context.WithCancel(context.Background())
	client := &http.Client{Transport: w, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		// The headers may hold a password that is meant for this place alone.
		if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host || len(via) >= 5 {
			return fmt.Errorf("it sends on to %s", to.URL.Redacted())
		}
		return nil
	}}
	return w, &sdk.StreamableClientTransport{
		Endpoint: s.conf.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: w.max,
	}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(w.ctx, cancel)
	done := func() { stop(); cancel() }
	r = r.Clone(ctx)
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	res, err := w.transport.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		w.fail(fmt.Errorf("it answers %s; give what it wants under headers in mcp_servers", res.Status))
	}
	res.Body = &limited{ReadCloser: res.Body, left: w.max, web: w, done: done}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err := refusal(res, kind); err != nil && r.Method == http.MethodPost {
		return nil, errors.Join(err, res.Body.Close())
	}
	switch kind {
	case "application/json", "text/event-stream":
		res.Body = newLenientBody(res.Body, kind == "text/event-stream")
	}
	return res, nil
}

// refusal words the status of a message that was not taken. The library would name
// it without its number. A message of the protocol that explains it is the better word.
func refusal(res *http.Response, kind string) error {
	code := res.StatusCode
	if code < 400 || code < 500 && code != http.StatusTooManyRequests && kind == "application/json" {
		return nil
	}
	return fmt.Errorf("it answers %s", res.Status)
}

// limited is an answer with a bound. It is for one reader.
type limited struct {
	io.ReadCloser
	left int
	web  *web
	done func()
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		err := fmt.Errorf("it sent an answer of more than %d MB", l.web.max>>20)
		l.web.fail(err)
		return 0, err
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

func (l *limited) Close() error {
	l.done()
	return l.ReadCloser.Close()
}

func (w *web) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bad == nil {
		w.bad = err
	}
}

func (w *web) why(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bad != nil {
		return w.bad
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the address, which may hold a password
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("the connection broke off (%w)", err)
	}
	return err
}

func (w *web) sever(time.Duration) error {
	w.cancel()
	w.transport.CloseIdleConnections()
	return nil
}
