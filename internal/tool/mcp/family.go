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
	Policy  Policy
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

// The times that servers have.
const (
	startTime  = 10 * time.Second // to come up and list their tools
	callTime   = 5 * time.Minute  // for one call
	politeTime = time.Second / 2  // to end by themselves when their input ends
	cancelTime = time.Second      // to let go of a call that was cancelled
)

// Family owns the connections to all servers of a session. Start is called once,
// and before Close. mu owns closed; each server owns its connection.
type Family struct {
	env     Env
	servers []*server
	call    time.Duration

	mu     sync.Mutex
	closed bool
}

// New makes a family. Nothing is started yet.
func New(env Env) *Family {
	f := &Family{env: env, call: callTime}
	for _, conf := range env.Servers {
		f.servers = append(f.servers, &server{family: f, conf: conf, name: conf.Name, connecting: make(chan struct{}, 1)})
	}
	return f
}

// Start brings all servers up at the same time and returns their tools, in an
// order that depends on names alone. A server that does not come up in time is
// noted and has no tools. The error is that of ctx.
func (f *Family) Start(ctx context.Context) ([]tool.Tool, error) {
	bounded, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	lists := make([][]offer, len(f.servers))
	var work sync.WaitGroup
	for i, s := range f.servers {
		work.Go(func() {
			var err error
			if lists[i], err = s.start(bounded); err != nil && ctx.Err() == nil {
				f.env.Note(fmt.Sprintf("the MCP server %s is left out: %s", s.name, f.words(err)))
			}
		})
	}
	work.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return f.tools(lists), nil
}

// words are an error on one bounded line without the key.
func (f *Family) words(err error) string { return line(f.env.Key.String(err.Error()), 300) }

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
