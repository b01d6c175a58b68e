package fakellm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// TB is the part of testing.TB that a server needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Request is one request as it came.
type Request struct {
	Path     string
	Header   http.Header
	Body     []byte
	Messages []json.RawMessage // of the body, byte for byte
	Tools    json.RawMessage
}

// Server plays one script. All methods are safe for concurrent use: mu guards
// what changes, and a request is judged and given its step under it.
type Server struct {
	URL string

	script Script
	http   *http.Server
	served chan struct{} // closed when the listener has ended
	done   chan struct{} // closed by Close
	once   sync.Once

	mu       sync.Mutex
	requests []Request
	taken    int // steps
	broken   []string
	rules    rules
	arrived  chan struct{} // closed and replaced at each request
	released chan struct{} // closed and replaced by Release
}

// New starts a server. The caller closes it.
func New(script Script) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), script: script,
		served: make(chan struct{}), done: make(chan struct{}),
		arrived: make(chan struct{}), released: make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // always ends with an error, that of Close
	}()
	return s, nil
}

// Start starts a server that ends with the test, and fails it where a request
// broke a rule.
func Start(t TB, script Script) *Server {
	t.Helper()
	s, err := New(script)
	if err != nil {
		t.Fatalf("fake model server: %v", err)
	}
	t.Cleanup(func() {
		s.Close()
		if !script.Lenient {
			for _, v := range s.Violations() {
				t.Errorf("the model server was sent a bad request: %s", v)
			}
		}
	})
	return s
}

// Close ends the server with all its connections and waits for its listener.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.done)
		_ = s.http.Close() // closing twice is all that can go wrong
		<-s.served
	})
}

// Requests returns what has come so far, refused requests included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Violations returns the rules that were broken so far.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.broken...)
}

// Wait returns when n requests have arrived.
func (s *Server) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, next := len(s.requests), s.arrived
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d requests have arrived: %w", have, n, ctx.Err())
		case <-s.done:
			return fmt.Errorf("%d of %d requests have arrived: the server is closed", have, n)
		}
	}
}

// Release lets every answer go on that holds now.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.released)
	s.released = make(chan struct{})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"fake","object":"model"}]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	step, n, released, problem := s.admit(&req, r.Method)
	if problem != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"error": object{"message": problem, "type": "invalid_request_error"}})
		return
	}
	a := answer{server: s, step: step, w: w, r: r, released: released}
	a.send(n)
}

// admit logs a request, judges it and gives it a step, or says what is wrong.
// The released channel is taken with the step, so that a Release that follows
// the request's arrival is never missed.
func (s *Server) admit(req *Request, method string) (step Step, n int, released <-chan struct{}, problem string) {
	var body struct {
		Messages []json.RawMessage `json:"messages"`
		Tools    json.RawMessage   `json:"tools"`
	}
	err := json.Unmarshal(req.Body, &body)
	req.Messages, req.Tools = body.Messages, body.Tools

	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.requests)
	s.requests = append(s.requests, *req)
	close(s.arrived)
	s.arrived = make(chan struct{})

	switch {
	case method != http.MethodPost || !strings.HasSuffix(req.Path, "/chat/completions"):
		problem = fmt.Sprintf("%s %s is not served here", method, req.Path)
	case err != nil:
		problem = "the body is no JSON: " + err.Error()
	case !s.script.Lenient:
		problem = s.rules.check(*req, s.script.Rewrites)
	}
	if problem == "" {
		switch {
		case s.script.Next != nil:
			step = s.script.Next(n, *req)
		case s.taken < len(s.script.Steps):
			step = s.script.Steps[s.taken]
		case s.script.RepeatLast && len(s.script.Steps) > 0:
			step = s.script.Steps[len(s.script.Steps)-1]
		default:
			problem = fmt.Sprintf("the script has %d steps and no answer for another request", len(s.script.Steps))
		}
	}
	if problem != "" {
		s.broken = append(s.broken, fmt.Sprintf("request %d: %s", n, problem))
		return Step{}, n, nil, problem
	}
	s.taken++
	step.Calls = append([]Call(nil), step.Calls...)
	for k := range step.Calls {
		if step.Calls[k].ID == "" && step.Raw == nil {
			step.Calls[k].ID = fmt.Sprintf("call_%d_%d", n, k)
		}
	}
	s.rules.answered(step)
	return step, n, s.released, ""
}
