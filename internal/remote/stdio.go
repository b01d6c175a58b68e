package remote

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"deepseek/internal/session"
)

// Codes of refusals about sessions and initialize.
const (
	CodeNotInitialized     = "NOT_INITIALIZED"
	CodeAlreadyInitialized = "ALREADY_INITIALIZED"
	CodeSessionBusy        = "SESSION_BUSY"
	CodeSessionNotOpen     = "SESSION_NOT_OPEN" // it is not owned here
)

// errInitialized refuses a second initialize.
var errInitialized = refuse(CodeAlreadyInitialized, "initialize was answered already: it is sent once")

// statusIdle is the status of a session that nobody works on.
const statusIdle = "idle"

// stdio is a server on standard streams: one client, any number of sessions.
// Its handlers run one at a time, and nothing else touches its fields while
// they do.
type stdio struct {
	backend Backend
	info    ServerInfo
	lim     limits
	out     *outbox
	ch      *channel
	stop    func() // takes no more input

	ready  bool // initialize was answered
	over   bool // shutdown was asked for
	caps   ServerCapabilities
	places map[string]*place // by session id
	failed error             // of ending sessions
}

// place is a session that the server owns, and the client's seat at it.
type place struct {
	*seat
	session Session
}

// ServeStdio serves a client on two files until the input ends, shutdown, or the
// end of ctx; what was read by then is answered. The turns in hand are cancelled,
// by the user where ctx ended, else as disposed. When it returns all sessions are
// closed and nothing reads or writes the files any more.
//
// The error says why the client was given up, or what could not be written.
func ServeStdio(ctx context.Context, in, out *os.File, b Backend, o Options) (err error) {
	files, err := newFileStream(in, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.release()) }()
	return serveStdio(ctx, files, b, o.orQuiet(), stdioLimits)
}

func serveStdio(ctx context.Context, files stream, b Backend, o Options, lim limits) error {
	c := newConn(files, nil, lim, o.Log)
	c.in.whole = false
	s := &stdio{
		backend: b, info: ServerInfo{Name: "deepseek", Version: o.Version}, lim: lim, out: c.out,
		stop: c.leave, places: map[string]*place{},
	}
	err := c.talk(ctx, func(ch *channel) func(string) call {
		s.ch = ch
		return s.find
	}, func(context.Context) {
		cause := session.CauseDisposed
		if ctx.Err() != nil {
			cause = session.CauseUser
		}
		s.dispose(cause)
	})
	return errors.Join(err, s.failed)
}

// find gives the handler of a method. Before initialize everything else is
// refused, and so it is after shutdown.
func (s *stdio) find(name string) call {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		h, ok := stdioMethods[name]
		switch {
		case s.over:
			return nil, refuse(CodeOwnerLeaving, "the server is shutting down")
		case !s.ready && name != MethodInitialize:
			return nil, refuse(CodeNotInitialized, "send initialize first")
		case !ok:
			return nil, unknownMethod(name)
		}
		return h(ctx, s, params)
	}
}

// sit gives the client its seat at a session that is owned from now on.
func (s *stdio) sit(owned Session) *place {
	host := ownClient{owned, s.caps.Approvals}
	p := &place{newSeat(host, s.out, s.lim, s.info, s.ch.afterAnswer), owned}
	p.presumed = statusIdle // nothing has been worked on
	s.places[p.id] = p
	return p
}

// ownClient is a session as the owner's own client sees it.
type ownClient struct {
	Host
	approvals bool
}

func (h ownClient) RemoteApprovals() bool { return h.approvals }

// leave ends the work on a session, tells the client the last of it, and frees
// the session. It may be called from several goroutines for different places.
func (s *stdio) leave(p *place, cause string) error {
	err := p.session.Rest(context.Background(), cause)
	flush, cancel := context.WithTimeout(context.Background(), s.lim.flush)
	defer cancel()
	if told := p.close(flush, true); told != nil && err == nil && s.out.dropped() == nil {
		err = told
	}
	return errors.Join(err, p.session.Close())
}

// dispose leaves all sessions at once.
func (s *stdio) dispose(cause string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range s.places {
		wg.Go(func() {
			err := s.leave(p, cause)
			mu.Lock()
			defer mu.Unlock()
			s.failed = errors.Join(s.failed, err)
		})
	}
	wg.Wait()
	clear(s.places)
}
