package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deepseek/internal/config"
	"deepseek/internal/tool"
)

// legacyProtocol is the version that is asked for. It is the last one that
// begins with a handshake: servers that know only that keep silent, or end, when
// they are asked for anything before it.
const legacyProtocol = "2025-11-25"

// server is one configured server. connecting is held by whoever makes a
// connection, so that calls at the same time make one. mu owns conn, the present
// connection.
type server struct {
	family *Family
	conf   config.Server
	name   string

	connecting chan struct{} // holds the token of whoever connects
	mu         sync.Mutex
	conn       *conn
}

// conn is one connection. done is closed when it has ended, by whichever side.
type conn struct {
	session *sdk.ClientSession
	link    link
	done    chan struct{}
}

// link is what lies below a connection.
type link interface {
	// why says what is wrong with the other side in better words than err, which
	// is the connection's.
	why(err error) error
	// sever ends the link, however busy it is, and returns when nothing of it is
	// left. grace is for a program to exit by itself. It may be called more than once.
	sever(grace time.Duration) error
}

// up is how long the server may take to come up and list its tools.
func (s *server) up() time.Duration { return cmp.Or(s.conf.StartTimeout, s.family.up) }

// patience is how long one call may take.
func (s *server) patience() time.Duration { return cmp.Or(s.conf.CallTimeout, s.family.call) }

// errClosed is the error of a call after Close.
var errClosed = errors.New("the run has ended")

// lock waits for the right to connect.
func (s *server) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.connecting <- struct{}{}:
		return func() { <-s.connecting }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *server) current() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// connected is a live connection: the present one, or a new one where that has ended.
func (s *server) connected(ctx context.Context) (*conn, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	old := s.current()
	if old != nil {
		select {
		case <-old.done:
		default:
			return old, nil
		}
		// What a program that died has left behind is ended before it runs again.
		if err := old.link.sever(0); err != nil {
			return nil, err
		}
	}
	if s.family.over() {
		return nil, errClosed
	}
	c, err := s.connect(ctx)
	s.mu.Lock()
	s.conn = c
	s.mu.Unlock()
	return c, err
}

// connect makes a connection; nothing of one that fails is left.
func (s *server) connect(ctx context.Context) (*conn, error) {
	var l link
	var t sdk.Transport
	var err error
	if s.conf.URL != "" {
		l, t = s.overHTTP()
	} else if l, t, err = s.overPipes(); err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "deepseek", Version: s.family.env.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // no roots, no sampling, no questions to the user
	})
	// A write to a program that does not read knows no context.
	stop := context.AfterFunc(ctx, func() { _ = l.sever(0) }) // said again below
	defer stop()
	session, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: legacyProtocol})
	if err != nil {
		if bad := unfit("the handshake", err); bad != nil {
			err = bad
		} else if ctx.Err() == nil {
			err = l.why(err)
		} else {
			err = fmt.Errorf("it did not come up in %v", s.up())
		}
		return nil, errors.Join(err, l.sever(0))
	}
	c := &conn{session: session, link: l, done: make(chan struct{})}
	go func() { // ends with the connection
		defer close(c.done)
		_ = session.Wait() // why is the link's to say
	}()
	return c, nil
}

// start connects and lists the tools.
func (s *server) start(ctx context.Context) ([]offer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.up())
	defer cancel()
	c, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	offers, err := s.list(ctx, c)
	if err != nil {
		if bad := unfit("the question for its tools", err); bad != nil {
			err = bad
		} else if ctx.Err() == nil {
			err = c.link.why(err)
		} else {
			err = fmt.Errorf("it did not list its tools in %v", s.up())
		}
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return offers, nil
}

func (s *server) list(ctx context.Context, c *conn) ([]offer, error) {
	if caps := c.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		s.family.env.Note(fmt.Sprintf("the MCP server %s has no tools: it says so itself", s.name))
		return nil, nil
	}
	var offers []offer
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		if len(offers) == maxListed {
			s.family.env.Note(fmt.Sprintf("the MCP server %s lists more than %d tools; the others are left out", s.name, maxListed))
			break
		}
		offers = append(offers, offer{server: s, name: t.Name, description: t.Description, schema: t.InputSchema})
	}
	if len(offers) == 0 {
		s.family.env.Note(fmt.Sprintf("the MCP server %s has no tools: its list is empty", s.name))
	}
	return offers, nil
}

// call runs one tool. The server is connected anew, once, if it has died since.
func (s *server) call(ctx context.Context, name string, args json.RawMessage) tool.Result {
	bounded, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	up, stop := context.WithTimeout(bounded, s.up())
	c, err := s.connected(up)
	stop()
	switch {
	case ctx.Err() != nil:
		return tool.Errorf(tool.CodeAborted, "cancelled before the call was sent")
	case err != nil:
		return tool.Errorf(CodeUnreachable, "the MCP server %s is not there: %s. The call was not sent.", s.name, s.family.words(err))
	}
	type outcome struct {
		res *sdk.CallToolResult
		err error
	}
	got := make(chan outcome, 1)
	go func() { // ends with the call, or with the connection
		res, err := c.session.CallTool(bounded, &sdk.CallToolParams{Name: name, Arguments: args})
		got <- outcome{res, err}
	}()
	var o outcome
	select {
	case o = <-got:
	case <-bounded.Done():
		// The server was told. One that does not even read holds the call.
		wait := time.NewTimer(s.family.letGo)
		defer wait.Stop()
		select {
		case o = <-got:
		case <-wait.C:
			err := c.link.sever(0)
			o = <-got
			o.err = errors.Join(o.err, err)
		}
	}
	if o.err == nil {
		return s.result(o.res)
	}
	r := s.failure(ctx, bounded, c, o.err)
	if r.Code == CodeBroken {
		// Whatever state it is in, the next call begins anew.
		_ = c.link.sever(0) // close says it again
		_ = c.session.Close()
		<-c.done
	}
	return r
}

// close ends the connection and what is below it.
func (s *server) close(ctx context.Context) error {
	unlock, err := s.lock(context.WithoutCancel(ctx)) // connecting is bounded, and knows of the end
	if err != nil {
		return err
	}
	defer unlock()
	c := s.current()
	if c == nil {
		return nil
	}
	closed := make(chan struct{})
	go func() { // ends when the link is severed, at the latest
		defer close(closed)
		_ = c.session.Close() // the link is ended whatever it says
	}()
	grace := politeTime
	polite := time.NewTimer(politeTime)
	defer polite.Stop()
	select {
	case <-closed:
	case <-polite.C:
		grace = 0
	case <-ctx.Done():
		grace = 0
	}
	err = c.link.sever(grace)
	<-closed
	<-c.done
	return err
}
