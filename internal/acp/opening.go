package acp

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// atOnce is how many requests are worked on at once that may take long. One more
// holds up what comes behind it.
const atOnce = 8

// Why work ends that takes long.
var (
	errTakenBack = &sdk.RequestError{Code: codeCancelled, Message: "the request was cancelled"}
	errUnopened  = &sdk.RequestError{Code: codeCancelled, Message: "the session is not open: its opening was cancelled"}
	errClosed    = &sdk.RequestError{Code: codeCancelled, Message: "the session was closed while it was being opened"}
	errLeft      = &sdk.RequestError{
		Code: codeInternal, Message: "the server ends before this is done", Data: errorData{Code: remote.CodeOwnerLeaving},
	}
)

// work is the part of a request that goes on while later messages are served.
type work[R any] func(ctx context.Context) (R, error)

// long is a handler in two parts. begin does what has to be done in the order of
// arrival, and what it returns does the rest: a session that is slow to open,
// because its servers are slow to come up or its log is long, holds up nobody else.
func long[P, R any](begin func(*server, P) (work[R], error)) handler {
	return func(ctx context.Context, s *server, raw json.RawMessage, taken func()) (any, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, err
		}
		select {
		case s.busy <- struct{}{}:
			defer func() { <-s.busy }()
		case <-s.asking.Done():
			return nil, errLeft
		}
		rest, err := begin(s, p)
		if err != nil {
			return nil, err
		}
		s.long.Add(1) // before the next message, which may be the end
		defer s.long.Done()
		taken()
		ctx, stop := s.working(ctx)
		defer stop()
		res, err := rest(ctx)
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			s.o.Log.Debug("a request was ended", "error", err)
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
}

// working is the context of work on a request. It ends when the client takes the
// request back, when the server is told to end, and some time after the client
// has left: what was read by then is answered, if it does not take too long.
func (s *server) working(request context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(request))
	stops := []func() bool{
		context.AfterFunc(request, func() {
			if !s.gone() {
				cancel(errTakenBack)
			}
		}),
		context.AfterFunc(s.asking, func() { cancel(errLeft) }),
		context.AfterFunc(s.patient, func() { cancel(errLeft) }),
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

func (s *server) newSession(p sdk.NewSessionRequest) (work[sdk.NewSessionResponse], error) {
	if err := where(p.Cwd, p.AdditionalDirectories); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (res sdk.NewSessionResponse, err error) {
		owned, err := s.backend.New(ctx, p.Cwd, s.servers(p.McpServers))
		if err != nil {
			return res, err
		}
		at := newPlace(s, sdk.SessionId(owned.Header().ID))
		at.attach(owned)
		close(at.opened)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.places[at.id] = at
		return sdk.NewSessionResponse{SessionId: at.id, Modes: modes(owned)}, nil
	}, nil
}

func (s *server) load(p sdk.LoadSessionRequest) (work[sdk.LoadSessionResponse], error) {
	open, err := s.reopening(p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers, true)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (res sdk.LoadSessionResponse, err error) {
		res.Modes, err = open(ctx)
		return res, err
	}, nil
}

func (s *server) resume(p sdk.ResumeSessionRequest) (work[sdk.ResumeSessionResponse], error) {
	open, err := s.reopening(p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers, false)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (res sdk.ResumeSessionResponse, err error) {
		res.Modes, err = open(ctx)
		return res, err
	}, nil
}

// reopening takes the client's place at an old session, which is then opened and
// told if tell says so. What the client says of the session meanwhile waits for that.
func (s *server) reopening(id sdk.SessionId, cwd string, more []string, servers []sdk.McpServer, tell bool) (work[*sdk.SessionModeState], error) {
	if err := where(cwd, more); err != nil {
		return nil, err
	}
	at, before, err := s.reserve(id)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*sdk.SessionModeState, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(at.wanted, cancel)()
		err := s.reopen(ctx, at, before, cwd, servers, tell)
		switch {
		case err == nil:
			return modes(at.session), nil
		case s.closed(at):
			return nil, errClosed
		}
		return nil, err
	}, nil
}

// reserve makes a place for a session that is to be opened. before is the one
// that is left for it, nil if there is none.
func (s *server) reserve(id sdk.SessionId) (at, before *place, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.places[id]
	switch {
	case before == nil, before.closed:
	case before.busy():
		return nil, nil, invalidParams("sessionId", "a prompt of session %s is being worked on; cancel it or wait for its end", id)
	case !before.isOpen():
		return nil, nil, invalidParams("sessionId", "session %s is being opened; wait for that", id)
	}
	at = newPlace(s, id)
	s.places[id] = at
	return at, before, nil
}

// reopen opens a session. One that is open here is left first, so that it is
// told from its file. If it fails there is no place any more.
func (s *server) reopen(ctx context.Context, at, before *place, cwd string, servers []sdk.McpServer, tell bool) (err error) {
	defer func() {
		if err != nil {
			s.remove(at)
			at.unwant()
			at.failed = err
			if ctx.Err() != nil {
				at.failed = errUnopened
			}
			close(at.opened)
			if at.session != nil {
				err = joined(err, at.end(session.CauseDisposed))
			}
			return
		}
		close(at.opened)
	}()
	if before != nil {
		if err := before.leave(session.CauseDisposed); err != nil {
			return err
		}
	}
	owned, err := s.backend.Load(ctx, string(at.id), cwd, s.servers(servers))
	if err != nil {
		return err
	}
	at.attach(owned)
	return at.catchUp(ctx, tell)
}

func (s *server) closeSession(p sdk.CloseSessionRequest) (work[sdk.CloseSessionResponse], error) {
	at, err := s.at(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	at.closed = true
	s.mu.Unlock()
	at.unwant()
	return func(context.Context) (res sdk.CloseSessionResponse, err error) {
		defer s.remove(at)
		return res, at.leave(session.CauseDisposed)
	}, nil
}

func (s *server) closed(at *place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.closed
}

// remove forgets a place, unless there is another in its stead.
func (s *server) remove(at *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[at.id] == at {
		delete(s.places, at.id)
	}
}
