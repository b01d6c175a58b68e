package cli

import (
	"context"
	"errors"
	"time"

	"deepseek/internal/engine"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// rpcSession is a session that a server on standard streams owns. The server
// ends it by Rest and Close, in that order, or by Close alone if nothing was begun.
type rpcSession struct {
	host
	*owner
	first int64
	stops []func()
	timer *runTimer
}

var _ remote.Session = (*rpcSession)(nil)

// open equips a session whose settings go into the log with the first thing
// that is written. After an error the session is closed.
func (r *rpcServer) open(ctx context.Context, own *owner) (*rpcSession, error) {
	s := &rpcSession{host: host{own}, owner: own, first: own.state.Next - int64(len(own.closers))}
	own.tellsSettings, own.keepsCwd = true, true
	if err := own.equip(ctx); err != nil {
		return nil, errors.Join(err, own.close())
	}
	offer := func(c question.Card) bool {
		if c.Kind.Permits() {
			return s.cfg.Answerer == answererRemote || r.caps.Approvals
		}
		return s.cfg.Answerer == answererRemote || r.caps.Questions
	}
	s.stops = append(s.stops, own.questions.Provide(offer), own.questions.Watch(s.see))
	return s, nil
}

// begin lets others reach the session. Its file is there.
func (s *rpcSession) begin() error {
	if d := s.cfg.MaxDuration; d > 0 {
		t, err := s.startTimer(d)
		if err != nil {
			return err
		}
		s.timer = t
	}
	s.serve()
	return nil
}

// see runs the command of --on-question. The client is told by its seat.
func (s *rpcSession) see(ev question.Event) {
	switch {
	case ev.Card.Kind.Permits():
	case ev.Type == question.Opened:
		s.hook("opened", ev.Card)
	case ev.Outcome == question.Pending:
		s.hook("pending", ev.Card)
	}
}

// First implements remote.Session.
func (s *rpcSession) First() int64 { return s.first }

// Start implements remote.Session.
func (s *rpcSession) Start() { s.agent.Wake() }

// Rest implements remote.Session.
func (s *rpcSession) Rest(ctx context.Context, cause string) error {
	for {
		// Between the two somebody may have queued a message that wakes: again.
		err := s.agent.Cancel(ctx, session.Cause{Kind: cause}, true)
		if idle := s.agent.WhenIdle(ctx); idle != nil {
			return errors.Join(err, idle)
		}
		if s.agent.Leave() {
			return hosted(errors.Join(err, s.agent.Failure()))
		}
	}
}

// Close implements remote.Session.
func (s *rpcSession) Close() error {
	for _, stop := range s.stops {
		stop()
	}
	err := s.timer.stop()
	return errors.Join(err, s.close())
}

// runTimer cancels what goes on for longer than --max-duration, from one
// idleness to the next. It is one goroutine, ended by stop.
type runTimer struct {
	cancel context.CancelFunc
	feed   *engine.Feed
	done   chan struct{}
}

func (s *rpcSession) startTimer(d time.Duration) (*runTimer, error) {
	f, err := s.agent.Subscribe(s.log.file().Durable(), false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &runTimer{cancel: cancel, feed: f, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		var alarm *time.Timer
		for {
			it, err := f.Next(ctx)
			if alarm != nil && (err != nil || it.Status == engine.Idle) {
				alarm.Stop()
				alarm = nil
			}
			if err != nil {
				return // stopped, or the log failed and with it the agent
			}
			if it.Status == engine.Running && alarm == nil {
				alarm = time.AfterFunc(d, func() {
					// The log's failure is the agent's, which tells it.
					_ = s.agent.Cancel(context.Background(), session.Cause{Kind: session.CauseHook, Hook: "duration"}, true)
				})
			}
		}
	}()
	return t, nil
}

func (t *runTimer) stop() error {
	if t == nil {
		return nil
	}
	t.cancel()
	<-t.done
	return t.feed.Close()
}
