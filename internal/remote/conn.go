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

// conn serves one client on a control socket.
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
	s := newSeat(host, c.out, c.lim, info, ch.afterAnswer)
	srv := jrpc2.NewServer(assigner{s, ch}, &jrpc2.ServerOptions{
		Concurrency: 1, DisableBuiltin: true, NewContext: func() context.Context { return ctx },
	})
	if err := srv.Start(ch).Wait(); err != nil {
		c.log.Debug("serve a client", "error", err)
	}

	// The input is over and all of it is answered.
	flush, cancel := context.WithTimeout(ctx, c.lim.flush)
	defer cancel()
	if err := s.close(flush, leaving()); err != nil {
		c.log.Debug("a client did not get the last events", "error", err)
	}
	c.out.finish()
	c.limitWrites(c.lim.flush)
	if err := <-written; err != nil {
		c.log.Debug("a client was left", "error", err)
	}
	if err := c.stream.Close(); err != nil {
		c.log.Debug("close a client's connection", "error", err)
	}
	c.in.stop() // it may wait for room instead of reading
	<-c.in.done
}

// assigner finds the handler of a method for one connection.
type assigner struct {
	seat *seat
	ch   *channel
}

// Assign implements jrpc2.Assigner.
func (a assigner) Assign(_ context.Context, name string) jrpc2.Handler {
	h, ok := socketMethods[name]
	if !ok {
		return nil
	}
	return func(ctx context.Context, req *jrpc2.Request) (res any, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, &jrpc2.Error{Code: jrpc2.InternalError, Message: fmt.Sprintf("%s failed in a way it should not have: %v", name, p)}
			}
			if req.IsNotification() {
				for _, f := range a.ch.takeAfter() {
					f()
				}
			}
		}()
		var raw json.RawMessage
		if err := req.UnmarshalParams(&raw); err != nil {
			return nil, err
		}
		if res, err = h(ctx, a.seat, raw); err != nil {
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
