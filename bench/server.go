package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// server answers as a model would, at once. mu guards the requests.
type server struct {
	url    string
	http   *http.Server
	served chan error
	answer func(n int) []string // the pieces that are sent one by one, of request n of the process at hand

	mu       sync.Mutex
	requests []request
	came     chan struct{} // closed and replaced at each request
}

// request is one as the server saw it.
type request struct {
	arrived, done time.Time
	bytes         int
}

func serve(answer func(n int) []string) (*server, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + l.Addr().String(), answer: answer, served: make(chan error, 1), came: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

func (s *server) close() {
	_ = s.http.Close() // a second time is all that can go wrong
	for range s.served {
		return // always with an error, that of Close
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, request{arrived: time.Now(), bytes: len(body)})
	close(s.came)
	s.came = make(chan struct{})
	s.mu.Unlock()

	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, piece := range s.answer(n) {
		if _, err := io.WriteString(w, piece); err != nil || flush.Flush() != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < len(s.requests) {
		s.requests[n].done = time.Now()
	}
}

// take returns the requests so far and forgets them, so that the next counts from 0.
func (s *server) take() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.requests
	s.requests = nil
	return list
}

// wait returns request n, as soon as it has come.
func (s *server) wait(ctx context.Context, n int) (request, error) {
	for {
		s.mu.Lock()
		list, came := s.requests, s.came
		s.mu.Unlock()
		if n < len(list) {
			return list[n], nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return request{}, fmt.Errorf("request %d did not come: %w", n, ctx.Err())
		}
	}
}

// busy is the time in which the server had a request in hand.
func busy(list []request) time.Duration {
	var sum time.Duration
	for _, r := range list {
		if !r.done.IsZero() {
			sum += r.done.Sub(r.arrived)
		}
	}
	return sum
}

type object = map[string]any

func event(delta object, finish any) string {
	raw, err := json.Marshal(object{
		"id": "c1", "object": "chat.completion.chunk", "created": 1790000000, "model": "bench",
		"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
	})
	if err != nil {
		panic(err) // values of our own
	}
	return "data: " + string(raw) + "\n\n"
}

const ending = `data: {"id":"c1","object":"chat.completion.chunk","created":1790000000,"model":"bench","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}` +
	"\n\ndata: [DONE]\n\n"

// text is an answer of text alone.
func text(words ...string) []string {
	out := make([]string, 0, len(words)+1)
	for _, w := range words {
		out = append(out, event(object{"content": w}, nil))
	}
	return append(out, event(object{"content": ""}, "stop")+ending)
}

// call is an answer that calls a tool.
func call(id, name string, arguments object) []string {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // values of our own
	}
	delta := object{"tool_calls": []object{{"index": 0, "id": id, "type": "function", "function": object{"name": name, "arguments": string(raw)}}}}
	return []string{event(delta, nil) + event(object{}, "tool_calls") + ending}
}
