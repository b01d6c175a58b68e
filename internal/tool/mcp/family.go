package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/permission"
	"deepseek/internal/redact"
	"deepseek/internal/tool"
)

// Policy decides on calls.
type Policy interface {
	Server(ctx context.Context, r permission.Request, trusted bool) error
}

// Service is a program that was started for a server.
type Service interface {
	Exited() <-chan struct{}
	Err() error // how it ended, once Exited is closed
	End() error // ends it with all it started; returns when they are gone
}

// Env is what the servers work with.
type Env struct {
	Servers []config.Server // in the order of their names
	Cwd     string          // where programs are started, unless a server says otherwise
	Home    string          // the user's home, for "~/" in a server's cwd
	// Serve starts a program in a session of its own, with an environment that
	// holds cmd.Env and no key, and ends it at last if nobody else has.
	Serve   func(cmd *exec.Cmd) (Service, error)
	Key     redact.Key // taken out of what servers print and say
	Version string     // of this program
	Note    func(line string)
	// Stderr takes what a server prints there, a line at a time. Nil: nobody
	// wants it. Both functions may be called from any goroutine.
	Stderr func(server, line string)
}

// maxMessage bounds one message of a server, and all that a program sends
// between two answers.
const maxMessage = 8 << 20 // bytes

// The times that servers have.
const (
	startTime  = 10 * time.Second // to come up and list their tools, unless the configuration says otherwise
	callTime   = 5 * time.Minute  // for one call, likewise
	politeTime = time.Second / 2  // to end by themselves when their input ends
	cancelTime = time.Second      // to let go of a call that was cancelled
	exitTime   = time.Second / 5  // to exit, for a program that broke off
)

// Family owns the connections to all servers of a session. Start is called once,
// and before Close and Tools. mu owns closed; each server owns its connection.
type Family struct {
	env     Env
	servers []*server
	offered []offered
	up      time.Duration // startTime and callTime, for servers that have none of their own
	call    time.Duration
	letGo   time.Duration // cancelTime
	exit    time.Duration // exitTime
	max     int           // maxMessage

	mu     sync.Mutex
	closed bool
}

// New makes a family. Nothing is started yet.
func New(env Env) *Family {
	f := &Family{env: env, up: startTime, call: callTime, letGo: cancelTime, exit: exitTime, max: maxMessage}
	for _, conf := range env.Servers {
		f.servers = append(f.servers, &server{family: f, conf: conf, name: conf.Name, connecting: make(chan struct{}, 1)})
	}
	return f
}

// Start brings all servers up at the same time and asks for their tools. A
// server that does not come up in time is noted and has none. The error is that
// of ctx.
func (f *Family) Start(ctx context.Context) error {
	lists := make([][]offer, len(f.servers))
	var work sync.WaitGroup
	for i, s := range f.servers {
		work.Go(func() {
			var err error
			if lists[i], err = s.start(ctx); err != nil && ctx.Err() == nil {
				f.env.Note(fmt.Sprintf("the MCP server %s is left out: %s", s.name, f.words(err)))
			}
		})
	}
	work.Wait()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f.offered = f.choose(lists)
	return nil
}

// Tools are the tools of all servers, in an order that depends on names alone,
// for an agent that the policy is for. It may be called once Start has returned.
func (f *Family) Tools(policy Policy) []tool.Tool {
	tools := make([]tool.Tool, len(f.offered))
	for i, o := range f.offered {
		tools[i] = &remote{server: o.server, policy: policy, name: o.name, spec: o.spec}
	}
	return tools
}

// Close ends all connections and the programs behind them. It returns soon after
// ctx ends.
func (f *Family) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	errs := make([]error, len(f.servers))
	var work sync.WaitGroup
	for i, s := range f.servers {
		work.Go(func() { errs[i] = s.close(ctx) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func (f *Family) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// stderr takes a program's errors: line by line to whoever wants them, and the
// last one is kept. It ends with the last writer, or when r is closed.
func (f *Family) stderr(name string, r io.Reader, last *lastLine) {
	var out io.Writer = last
	if f.env.Stderr != nil {
		out = io.MultiWriter(last, &lineWriter{to: func(l string) { f.env.Stderr(name, f.env.Key.String(l)) }})
	}
	_, _ = io.Copy(out, r) // neither writer fails; the end is the program's, or ours
}
