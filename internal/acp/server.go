package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// flushTime is how long a client that leaves may take to read what is left, and
// how long what it has asked for may take to be done.
const flushTime = 5 * time.Second

// server serves one client. Handlers take messages up one at a time, in the
// order of their arrival; a prompt then goes on by itself.
//
// mu guards ready, forms, places, and whether one of these is closed.
type server struct {
	ctx     context.Context // ends when the client is left
	asking  context.Context // ends when nothing new is begun any more
	patient context.Context // ends some time after the client has left
	backend Backend
	o       Options
	wire    *wire
	gate    *gate
	conn    *sdk.Connection

	work sync.WaitGroup // requests that are at the client
	long sync.WaitGroup // requests whose work goes on while others are served
	busy chan struct{}  // a token for each of these

	mu     sync.Mutex
	ready  bool
	forms  bool // the client shows forms
	places map[sdk.SessionId]*place
}

// Serve serves a client on two files until the input ends or ctx does. What was
// read by then is answered: prompts in hand as cancelled. When it returns all
// sessions are closed and nothing reads or writes the files any more.
//
// The error says why the client was given up, or what could not be written.
func Serve(ctx context.Context, in, out *os.File, b Backend, o Options) error {
	stream, err := remote.NewLineStream(in, out, longestLine)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, stream.Stop)
	err = serve(ctx, stream, stream, b, o)
	stop()
	return errors.Join(err, stream.Close())
}

// serve is Serve on lines that end when asking does.
func serve(asking context.Context, in lines, out io.Writer, b Backend, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = question.SystemClock{}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(asking))
	defer cancel()
	patient, hurry := context.WithCancel(ctx)
	s := &server{
		ctx: ctx, asking: asking, patient: patient, backend: b, o: o, wire: newWire(out),
		busy: make(chan struct{}, atOnce), places: map[sdk.SessionId]*place{},
	}
	s.gate = newGate(in, s.wire)
	s.conn = sdk.NewConnection(s.handle, s.wire, s.gate)
	s.conn.SetLogger(o.Log)
	close(s.gate.begin)
	<-s.conn.Done()
	cause := session.CauseDisposed
	if asking.Err() != nil {
		cause = session.CauseUser
	}
	late := time.AfterFunc(flushTime, hurry)
	err := s.dispose(cause)
	s.long.Wait()
	late.Stop()
	hurry()
	err = errors.Join(err, s.dispose(cause)) // of sessions that have come up only now
	<-s.wire.square()
	cancel()
	s.work.Wait()
	return err
}

// handle serves one message. It is the SDK's handler, and never panics. The
// parameters are the gate's.
func (s *server) handle(ctx context.Context, name string, _ json.RawMessage) (result any, failed *sdk.RequestError) {
	params := s.gate.handed()
	var once sync.Once
	taken := func() { once.Do(func() { s.gate.taken <- struct{}{} }) }
	defer taken()
	defer func() {
		if p := recover(); p != nil {
			result, failed = nil, &sdk.RequestError{Code: codeInternal, Message: fmt.Sprintf("%s failed in a way it should not have: %v", name, p)}
		}
	}()
	h, ok := methods[name]
	switch {
	case !s.initialized() && name != sdk.AgentMethodInitialize:
		return nil, &sdk.RequestError{Code: codeInvalidRequest, Message: "send initialize first", Data: errorData{Code: remote.CodeNotInitialized}}
	case !ok:
		return nil, &sdk.RequestError{Code: -32601, Message: fmt.Sprintf("there is no method %q here", clip(name))}
	}
	res, err := h(ctx, s, params, taken)
	if err != nil {
		return nil, requestError(err)
	}
	return res, nil
}

func (s *server) initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// showsForms tells whether the client offers elicitation of that kind.
func (s *server) showsForms() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms
}

// at is the place at a session that is open here.
func (s *server) at(id sdk.SessionId) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.places[id]; p != nil && !p.closed {
		return p, nil
	}
	return nil, &sdk.RequestError{
		Code: codeNotFound, Message: fmt.Sprintf("session %q is not open here; load it first", clip(string(id))),
		Data: errorData{Code: remote.CodeSessionNotFound},
	}
}

// dispose leaves all sessions at once.
func (s *server) dispose(cause string) error {
	s.mu.Lock()
	places := s.places
	s.places = map[sdk.SessionId]*place{}
	s.mu.Unlock()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, p := range places {
		wg.Go(func() {
			err := p.leave(cause)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return failed
}

// update tells the client something of a session. It waits while the client is
// far behind.
func (s *server) update(id sdk.SessionId, u sdk.SessionUpdate) error {
	return s.conn.SendNotification(s.ctx, sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: id, Update: u})
}

// gone tells whether the client has left.
func (s *server) gone() bool {
	select {
	case <-s.conn.Done():
		return true
	default:
		return false
	}
}

// clip shortens what a client wrote where it is repeated.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
