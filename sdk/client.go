package deepseek

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"
)

// Options say how the server is started and what holds for all its sessions.
// What is zero is left to the server's own settings.
type Options struct {
	Command    []string // starts the server; default deepseek rpc
	Env        []string // NAME=value, added to the environment
	Cwd        string   // where it works; default the working directory
	Model      string
	Mode       string // legacy or timed
	Timeout    int    // seconds a timed question waits, -1 for ever
	Permission string // read-only, workspace-write or full-access

	// OnQuestion answers questions. Without it timed questions are left pending,
	// as in any unattended run.
	OnQuestion Handler
	// OnApproval answers approvals and plan reviews, whose questions have the
	// options to choose from. Without it they are denied, unless another client
	// may answer.
	OnApproval Handler

	Stderr io.Writer // what the server writes there; may be nil
}

// Client is a server of sessions and the connection to it. All methods are safe
// for concurrent use. Their errors are *RefusedError, *ServerError, ErrClosed,
// or that of their context: then the request may have taken effect.
//
// mu guards the fields below it.
type Client struct {
	conn     *connection
	handlers map[string]Handler
	ctx      context.Context // of handlers
	cancel   context.CancelFunc
	work     sync.WaitGroup // handlers

	mu    sync.Mutex
	over  error
	runs  map[*run]struct{}
	waits map[waitKey]*wait
	feeds map[*feed]struct{}
}

// run is a run in hand. The interval is the reading goroutine's until done is closed.
type run struct {
	interval
	done      chan struct{}
	sessionID string // guarded by the client's mu, as is what follows
	failure   error  // of a question handler
	broken    error  // the interval cannot be understood
	abandoned bool   // before its session had a name
}

// Parameters of requests.
type (
	callRef struct {
		SessionID string `json:"sessionId"`
		CallID    string `json:"callId"`
	}
	respondParams struct {
		callRef
		Answers []Answer   `json:"answers,omitzero"` // an empty list is one that does not fit
		Error   *rejection `json:"error,omitempty"`
	}
	rejection struct {
		Code string `json:"code"`
	}
	answerParams struct {
		callRef
		Answers []Answer `json:"answers"`
	}
	accepted struct {
		Accepted bool `json:"accepted"`
	}
	block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	messageParams struct {
		SessionID     string  `json:"sessionId,omitempty"`
		ContentBlocks []block `json:"contentBlocks"`
	}
	initializeParams struct {
		Cwd          string       `json:"cwd"`
		Model        string       `json:"model,omitempty"`
		Mode         string       `json:"mode,omitempty"`
		Timeout      *int         `json:"timeout,omitempty"`
		Permission   string       `json:"permission,omitempty"`
		Capabilities capabilities `json:"capabilities"`
	}
	capabilities struct {
		Questions bool `json:"questions,omitempty"`
		Approvals bool `json:"approvals,omitempty"`
	}
)

func message(sessionID, text string) messageParams {
	return messageParams{sessionID, []block{{"text", text}}}
}

// Start starts the server. ctx bounds the start alone; the caller owes Close.
func Start(ctx context.Context, o Options) (*Client, error) {
	if len(o.Command) == 0 {
		o.Command = []string{"deepseek", "rpc"}
	}
	cwd, err := filepath.Abs(o.Cwd)
	if err != nil {
		return nil, err
	}
	p := initializeParams{
		Cwd: cwd, Model: o.Model, Mode: o.Mode, Permission: o.Permission,
		Capabilities: capabilities{Questions: o.OnQuestion != nil, Approvals: o.OnApproval != nil},
	}
	if o.Timeout != 0 {
		p.Timeout = &o.Timeout
	}
	c := &Client{
		handlers: map[string]Handler{
			KindQuestion: o.OnQuestion, KindLegacy: o.OnQuestion, KindApproval: o.OnApproval, KindPlanReview: o.OnApproval,
		},
		runs: map[*run]struct{}{}, waits: map[waitKey]*wait{}, feeds: map[*feed]struct{}{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{}) // notified and ended need conn
	conn, err := startServer(o,
		func(method string, params json.RawMessage) error { <-ready; return c.notified(method, params) },
		func(why error) { <-ready; c.ended(why) })
	if err != nil {
		c.cancel()
		return nil, err
	}
	c.conn = conn
	close(ready)
	if _, err := call[struct{}](ctx, conn, "initialize", p); err != nil {
		c.end(time.Second) // it has no sessions to close, and may not hear us
		return nil, err
	}
	return c, nil
}

// Close closes all sessions, which can be gone on with by id, and ends the
// server. It may be called more than once; runs in hand end with ErrClosed.
func (c *Client) Close() error {
	c.end(15 * time.Second)
	return nil
}

func (c *Client) end(patience time.Duration) {
	c.mu.Lock()
	if c.over == nil {
		c.over = ErrClosed
	}
	c.mu.Unlock()
	c.conn.stop(patience)
	c.cancel()
	c.work.Wait()
}

// Run runs a task in a new session, to the next whole-agent idle. A run that the
// model or a budget ended is no error: see FinishReason. When ctx ends the run is
// cancelled and what is queued is kept; the error is then that of ctx, joined with
// the *HandlerError if a handler had failed. With a *HandlerError alone the result
// is there as well.
func (c *Client) Run(ctx context.Context, task string) (*RunResult, error) {
	return c.Continue(ctx, "", task)
}

// Continue is Run in an old session. ErrRunInProgress: a run of this client owns it.
func (c *Client) Continue(ctx context.Context, sessionID, task string) (*RunResult, error) {
	r := &run{interval: interval{begun: time.Now()}, done: make(chan struct{}), sessionID: sessionID}
	if err := c.enter(r); err != nil {
		return nil, err
	}
	defer c.leave(r)
	receipt := c.conn.send("session/prompt", message(sessionID, task), func(raw json.RawMessage) error { return c.begun(r, raw) })
	for {
		select {
		case err := <-receipt:
			if err != nil {
				return nil, c.why(err)
			}
			receipt = nil
		case <-r.done:
			return c.result(ctx, r)
		case <-ctx.Done():
			return nil, c.abandon(ctx, r)
		}
	}
}

func (c *Client) enter(r *run) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return c.over
	}
	for other := range c.runs {
		if r.sessionID != "" && other.sessionID == r.sessionID {
			return fmt.Errorf("%w: %s", ErrRunInProgress, r.sessionID)
		}
	}
	c.runs[r] = struct{}{}
	return nil
}

func (c *Client) leave(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r)
}

// begun takes the answer to a run's prompt, in the reading goroutine.
func (c *Client) begun(r *run, raw json.RawMessage) error {
	var v struct{ SessionID, MessageID string }
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.sessionID = v.SessionID
	if r.abandoned {
		c.cancelRun(r.sessionID)
	}
	done, err := r.receipt(v.SessionID, v.MessageID)
	c.fed(r, done, err)
	return nil
}

// fed takes what came of feeding a run's interval. The caller holds mu.
func (c *Client) fed(r *run, done bool, err error) {
	if err != nil {
		c.cancelRun(r.sessionID) // nobody waits for it any more
	}
	if done || err != nil {
		r.broken = err
		close(r.done)
	}
}

// result completes the result of a run whose interval has ended.
func (c *Client) result(ctx context.Context, r *run) (*RunResult, error) {
	c.mu.Lock()
	over, broken := c.over, r.broken
	c.mu.Unlock()
	switch {
	case broken != nil:
		return nil, broken
	case r.ended.IsZero():
		return nil, over
	}
	res, err := r.result()
	if err != nil {
		return nil, err
	}
	if res.Questions, err = c.Questions(ctx, r.sessionID); err != nil {
		return nil, c.why(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return res, r.failure
}

// why prefers that the client was closed to what that led to.
func (c *Client) why(err error) error {
	var died *ServerError
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.As(err, &died) && c.over != nil {
		return c.over
	}
	return err
}

// abandon cancels a run that nobody waits for any more, and is why.
func (c *Client) abandon(ctx context.Context, r *run) error {
	c.mu.Lock()
	id, failure := r.sessionID, r.failure
	r.abandoned = id == "" // then begun cancels it
	c.mu.Unlock()
	if id != "" {
		c.cancelRun(id)
	}
	if failure != nil {
		return errors.Join(context.Cause(ctx), failure)
	}
	return context.Cause(ctx)
}

// cancelRun cancels what is given up whatever comes of it.
func (c *Client) cancelRun(sessionID string) {
	c.conn.send("session/cancel", map[string]any{"sessionId": sessionID, "keepInbox": true}, nil)
}
