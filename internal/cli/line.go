package cli

import (
	"context"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/remote"
)

// line is a connection to whoever owns a session, made anew where it was lost: an
// owner leaves a client that was stopped for too long, and its run goes on. The
// cards of one session share a line; its methods may be called from any goroutine.
type line struct {
	dial func(context.Context) (*remote.Client, error)
	turn chan struct{} // holds the token of who may look at c and change it
	c    *remote.Client
}

// newLine begins with a connection, which it takes over.
func newLine(c *remote.Client, dial func(context.Context) (*remote.Client, error)) *line {
	l := &line{dial: dial, turn: make(chan struct{}, 1), c: c}
	l.turn <- struct{}{}
	return l
}

// client is the connection, another one if the last was lost. An error is dial's,
// or the context's.
func (l *line) client(ctx context.Context) (*remote.Client, error) {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	select {
	case <-l.c.Done():
	default:
		return l.c, nil
	}
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = l.c.Close() // it has ended
	l.c = c
	return c, nil
}

// close ends the connection. Nobody uses the line any more.
func (l *line) close() error { return l.c.Close() }

// connect connects to whoever owns a session by now.
func (a *App) connect(ctx context.Context, cfg *config.Config, t target) (*remote.Client, error) {
	owner, err := logstore.ReadOwner(t.path)
	if err != nil || owner.Socket == "" || ofRoot(t.path, owner) {
		return nil, a.notLive(cfg, t)
	}
	return a.dialOwner(ctx, cfg, t, owner)
}
