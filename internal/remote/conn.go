package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/creachadair/jrpc2"

	"deepseek/internal/session"
)

// handler serves one method for a seat.
type handler func(ctx context.Context, s *seat, params json.RawMessage) (any, error)

// socketMethods are what a control socket serves.
var socketMethods = map[string]handler{
	MethodInitialize: method((*seat).initialize),
	MethodPing:       method(func(*seat, context.Context, *Empty) (any, error) { return Empty{}, nil }),
	MethodPrompt:     method((*seat).prompt),
	MethodSteer:      method((*seat).steer),
	MethodCancel:     method((*seat).cancel),
	MethodRead:       method((*seat).read),
	MethodQuestions:  method((*seat).questions),
	MethodAttach:     method((*seat).attach),
	MethodDetach:     method((*seat).detach),
	MethodRespond:    method((*seat).respond),
	MethodAnswer:     method((*seat).answer),
	MethodWithdraw:   method((*seat).withdraw),
}

// method is a handler of decoded parameters, of the seat's own session.
func method[P any](f func(*seat, context.Context, *P) (any, error)) handler {
	return func(ctx context.Context, s *seat, raw json.RawMessage) (any, error) {
		var p P
		if err := decodeParams(raw, &p); err != nil {
			return nil, err
		}
		if r, ok := any(p).(interface{ sessionID() string }); ok && r.sessionID() != "" && r.sessionID() != s.id {
			return nil, refuse(CodeSessionNotFound, "there is no session %q here; this is the socket of %s", clip([]byte(r.sessionID())), s.id)
		}
		return f(s, ctx, &p)
	}
}

// stream is a connection as serving needs it.
type stream interface {
	io.ReadWriteCloser
	SetWriteDeadline(time.Time) error
}

// conn serves one client, on a control socket or on standard streams.
type conn struct {
	stream stream
	gone   func() bool // the client has closed for good; may be nil
	lim    limits
	log    *slog.Logger

	in  *lineReader
	out *outbox
}

func newConn(s stream, gone func() bool, lim limits, log *slog.Logger) *conn {
	c := &conn{stream: s, gone: gone, lim: lim, log: log}
	c.in = newLineReader(s, lim, true)
	c.out = newOutbox(lim, func() {
		// The reason may still get through to a client that begins to read.
		c.limitWrites(time.Second)
	})
	return c
}

// limitWrites gives all further writes until then.
func (c *conn) limitWrites(d time.Duration) {
	// It fails only where the connection has ended already.
	_ = c.stream.SetWriteDeadline(time.Now().Add(d))
}

// leave has the connection end once what was read is answered. It returns at once.
func (c *conn) leave() { c.in.stop() }

// serve returns when the connection has ended and nothing of it is left
// running. It ends when its client closes it, stays silent or does not read,
// and after leave; what was read by then is answered. When ctx ends, requests
// in hand are cut short.
func (c *conn) serve(ctx context.Context, host Host, info ServerInfo, leaving func() bool) {
	var s *seat
	open := func(ch *channel) func(string) call {
		s = newSeat(host, c.out, c.lim, info, ch.afterAnswer)
		return s.find
	}
	err := c.talk(ctx, open, func(ctx context.Context) {
		if err := s.close(ctx, leaving()); err != nil {
			c.log.Debug("a client did not get the last events", "error", err)
		}
	})
	if err != nil {
		c.log.Debug("a client was left", "error", err)
	}
}

// call is a method's handler, bound to what it serves.
type call func(ctx context.Context, params json.RawMessage) (any, error)

// find gives the handler of a method of the control socket.
func (s *seat) find(name string) call {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		h, ok := socketMethods[name]
		if !ok {
			return nil, unknownMethod(name)
		}
		return h(ctx, s, params)
	}
}

func unknownMethod(name string) error {
	return jrpc2.Errorf(jrpc2.MethodNotFound, "there is no method %q here", clip([]byte(name)))
}

// talk serves requests until the input is over and all of it is answered. open
// is called first and yields what finds the handler of a method; end has the
// last word, for as long as its context lasts. The error says why a client was
// given up, or could not be written to.
func (c *conn) talk(ctx context.Context, open func(*channel) func(name string) call, end func(context.Context)) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	go c.in.run()
	written := make(chan error, 1)
	go func() {
		err := c.out.run(c.stream)
		if err != nil || c.out.dropped() != nil {
			// Nobody hears an answer any more: take no further request, end the one that reads.
			quit()
			c.in.stop()
			err = errors.Join(err, c.out.dropped())
		}
		written <- err
	}()

	ch := newChannel(ctx, c.in, c.out, c.gone)
	srv := jrpc2.NewServer(assigner{open(ch), ch}, &jrpc2.ServerOptions{
		Concurrency: 1, DisableBuiltin: true, NewContext: func() context.Context { return ctx },
	})
	if err := srv.Start(ch).Wait(); err != nil {
		c.log.Debug("serve a client", "error", err)
	}

	// The input is over and all of it is answered.
	flush, cancel := context.WithTimeout(ctx, c.lim.flush)
	defer cancel()
	end(flush)
	if silent := c.in.failed(); errors.Is(silent, errSilent) {
		c.out.endFor(silent)
	} else {
		c.out.finish()
	}
	c.limitWrites(c.lim.flush)
	err := c.out.unread(<-written)
	if err := c.stream.Close(); err != nil {
		c.log.Debug("close a client's connection", "error", err)
	}
	c.in.stop() // it may wait for room instead of reading
	<-c.in.done
	return err
}

// assigner finds the handlers of one connection. It has one for every name, so
// that the channel is told of the end of every notification.
type assigner struct {
	find func(name string) call
	ch   *channel
}

// Assign implements jrpc2.Assigner.
func (a assigner) Assign(_ context.Context, name string) jrpc2.Handler {
	h := a.find(name)
	return func(ctx context.Context, req *jrpc2.Request) (res any, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, &jrpc2.Error{Code: jrpc2.InternalError, Message: fmt.Sprintf("%s failed in a way it should not have: %v", name, p)}
			}
			if req.IsNotification() {
				a.ch.settled()
			}
		}()
		if res, err = h(ctx, a.ch.takeParams()); err != nil {
			return nil, wire(err)
		}
		if !req.IsNotification() {
			line, err := session.Marshal(res)
			if err != nil {
				return nil, err
			}
			a.ch.setResult(line)
		}
		return nil, nil
	}
}
