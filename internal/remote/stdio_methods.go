package remote

import (
	"context"
	"encoding/json"
	"errors"

	"deepseek/internal/session"
)

// stdioHandler serves one method of a server on standard streams.
type stdioHandler func(ctx context.Context, s *stdio, params json.RawMessage) (any, error)

// stdioMethods are what a server on standard streams serves.
var stdioMethods = map[string]stdioHandler{
	MethodInitialize: serverMethod((*stdio).initialize),
	MethodPing:       serverMethod(func(*stdio, context.Context, *Empty) (any, error) { return Empty{}, nil }),
	MethodShutdown:   serverMethod((*stdio).shutdown),
	MethodSessions:   serverMethod((*stdio).list),
	MethodPrompt:     serverMethod((*stdio).prompt),
	MethodSteer:      taking((*seat).steer, nil),
	MethodAnswer:     taking((*seat).answer, func(r any) bool { return r == AcceptResult{true} }),
	MethodWithdraw:   taking((*seat).withdraw, func(r any) bool { return r == WithdrawResult{true} }),
	MethodCancel:     sitting((*seat).cancel, (*stdio).notOpen),
	MethodClose:      serverMethod((*stdio).closeSession),
	MethodRead:       serverMethod((*stdio).read),
	MethodQuestions:  sitting((*seat).questions, (*stdio).questions),
	MethodAttach:     sitting((*seat).attach, yields(AttachResult{})),
	MethodDetach:     sitting((*seat).detach, yields(Empty{})),
	MethodRespond: sitting((*seat).respond, func(_ *stdio, _ context.Context, ref string) (any, error) {
		return nil, refuse(CodeNoClaim, "session %s is not open here, so there is no claim on its questions", clip([]byte(ref)))
	}),
}

// serverMethod is a handler of decoded parameters.
func serverMethod[P any](f func(*stdio, context.Context, *P) (any, error)) stdioHandler {
	return func(ctx context.Context, s *stdio, raw json.RawMessage) (any, error) {
		var p P
		if err := decodeParams(raw, &p); err != nil {
			return nil, err
		}
		return f(s, ctx, &p)
	}
}

// named is the parameters of a method of one session.
type named interface{ sessionID() string }

// sitting is a method of a session that is open here; otherwise says what it
// comes to for one that is not.
func sitting[P named](f func(*seat, context.Context, *P) (any, error), otherwise func(*stdio, context.Context, string) (any, error)) stdioHandler {
	return serverMethod(func(s *stdio, ctx context.Context, p *P) (any, error) {
		ref := (*p).sessionID()
		at, err := s.at(ctx, ref)
		switch {
		case err != nil:
			return nil, err
		case at == nil:
			return otherwise(s, ctx, ref)
		}
		return f(at.seat, ctx, p)
	})
}

// taking is a method that takes the session if it is not open here. A session
// that was taken for a request which changed nothing is let go again; done
// tells whether the result means a change, nil: every result does.
func taking[P named](f func(*seat, context.Context, *P) (any, error), done func(result any) bool) stdioHandler {
	return serverMethod(func(s *stdio, ctx context.Context, p *P) (any, error) {
		at, fresh, err := s.take(ctx, (*p).sessionID())
		if err != nil {
			return nil, err
		}
		res, err := f(at.seat, ctx, p)
		if fresh && (err != nil || done != nil && !done(res)) {
			delete(s.places, at.id)
			err = errors.Join(err, s.leave(at, session.CauseDisposed))
		}
		return res, err
	})
}

func yields(result any) func(*stdio, context.Context, string) (any, error) {
	return func(*stdio, context.Context, string) (any, error) { return result, nil }
}

// at is the place at a session, nil if it is not open here. An unknown session is an error.
func (s *stdio) at(ctx context.Context, ref string) (*place, error) {
	if ref == "" {
		return nil, invalid("sessionId", "is missing")
	}
	if p := s.places[ref]; p != nil {
		return p, nil
	}
	id, err := s.backend.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.places[id], nil
}

// take is the place at a session, which is taken first if need be.
func (s *stdio) take(ctx context.Context, ref string) (p *place, fresh bool, err error) {
	if p, err = s.at(ctx, ref); p != nil || err != nil {
		return p, false, err
	}
	owned, err := s.backend.Take(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	p = s.sit(owned)
	p.subscribe(ctx, owned.First())
	return p, true, nil
}

func (s *stdio) initialize(ctx context.Context, p *InitializeParams) (any, error) {
	if s.ready {
		return nil, errInitialized
	}
	if p.Cwd == "" {
		return nil, invalid("cwd", "is missing")
	}
	caps, err := s.backend.Initialize(ctx, p)
	if err != nil {
		return nil, err
	}
	s.ready, s.caps = true, caps
	return InitializeResult{ServerInfo: s.info, ProtocolVersion: ProtocolVersion, Capabilities: caps}, nil
}

// prompt answers once the message is on disk. The notifications of a session
// that begins with it come behind the answer.
func (s *stdio) prompt(ctx context.Context, p *MessageParams) (any, error) {
	if p.SessionID != "" {
		return s.promptOld(ctx, p)
	}
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	owned, id, err := s.backend.Begin(ctx, content)
	if err != nil {
		return nil, err
	}
	at := s.sit(owned)
	s.ch.afterAnswer(func() {
		at.subscribe(ctx, owned.First())
		owned.Start()
	})
	return MessageResult{SessionID: at.id, MessageID: id}, nil
}

func (s *stdio) promptOld(ctx context.Context, p *MessageParams) (any, error) {
	at, fresh, err := s.take(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	res, err := at.prompt(ctx, p)
	if fresh && err != nil {
		delete(s.places, at.id)
		return nil, errors.Join(err, s.leave(at, session.CauseDisposed))
	}
	return res, err
}

// read pages through the log of any session. The notifications of a session
// that is open here are not moved by it.
func (s *stdio) read(ctx context.Context, p *ReadParams) (any, error) {
	if p.FromSeq < 0 {
		return nil, invalid("fromSeq", "must be at least 0, is %d", p.FromSeq)
	}
	at, err := s.at(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	var page Page
	var header session.Header
	if at != nil {
		header = at.host.Header()
		page, err = at.host.Read(ctx, int64(p.FromSeq), s.lim.page)
	} else {
		header, page, err = s.backend.Read(ctx, p.SessionID, int64(p.FromSeq), s.lim.page)
	}
	if err != nil {
		return nil, err
	}
	if page.Events == nil {
		page.Events = []rawEvent{}
	}
	return ReadResult{Header: header, Events: page.Events, NextSeq: page.NextSeq, More: page.More}, nil
}

func (s *stdio) questions(ctx context.Context, ref string) (any, error) {
	return s.backend.Questions(ctx, ref)
}

func (s *stdio) notOpen(ctx context.Context, ref string) (any, error) {
	if err := s.backend.Free(ctx, ref); err != nil {
		return nil, err
	}
	return nil, refuse(CodeSessionNotOpen, "session %s is not open here and nobody works on it", clip([]byte(ref)))
}

// SessionsResult answers session/list.
type SessionsResult struct {
	Sessions any `json:"sessions"`
}

func (s *stdio) list(ctx context.Context, _ *Empty) (any, error) {
	rows, err := s.backend.List(ctx)
	if err != nil {
		return nil, err
	}
	return SessionsResult{rows}, nil
}

// closeSession answers when the lock is free. It may be asked for again.
func (s *stdio) closeSession(ctx context.Context, p *Ref) (any, error) {
	at, err := s.at(ctx, p.SessionID)
	switch {
	case err != nil:
		return nil, err
	case at == nil:
		return Empty{}, s.backend.Free(ctx, p.SessionID)
	}
	delete(s.places, at.id)
	return Empty{}, s.leave(at, session.CauseDisposed)
}

// shutdown answers when all sessions are closed; then the server ends.
func (s *stdio) shutdown(context.Context, *Empty) (any, error) {
	s.over = true
	s.dispose(session.CauseDisposed)
	s.ch.afterAnswer(s.stop)
	return Empty{}, nil
}
