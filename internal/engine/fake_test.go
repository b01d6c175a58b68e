package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// memLog is a log in memory. fail, if set, is asked before each append and sync.
type memLog struct {
	mu      sync.Mutex
	events  []session.Event
	durable int
	changed chan struct{}
	closed  bool
	fail    func(op string, n int) error
	ops     int
}

func newMemLog(events ...session.Event) *memLog {
	return &memLog{events: events, durable: len(events), changed: make(chan struct{})}
}

func (l *memLog) Append(expect int64, events []session.Event) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.op("append"); err != nil {
		return 0, err
	}
	if int(expect) != len(l.events) {
		return 0, fmt.Errorf("append at %d of %d", expect, len(l.events))
	}
	for _, e := range events {
		e.Seq = int64(len(l.events))
		l.events = append(l.events, e)
	}
	return int64(len(l.events)), nil
}

func (l *memLog) Sync(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.op("sync"); err != nil {
		return err
	}
	l.durable = len(l.events)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

func (l *memLog) op(name string) error {
	l.ops++
	if l.fail != nil {
		return l.fail(name, l.ops)
	}
	return nil
}

func (l *memLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *memLog) replay(f func(session.Event) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *memLog) Follow(from int64) (Cursor, error) { return &memCursor{l, int(from)}, nil }

type memCursor struct {
	log  *memLog
	next int
}

func (c *memCursor) Next(ctx context.Context) ([]Line, error) {
	for {
		c.log.mu.Lock()
		changed, closed := c.log.changed, c.log.closed
		var out []Line
		for ; c.next < c.log.durable; c.next++ {
			e := c.log.events[c.next]
			out = append(out, Line{Seq: e.Seq, Type: e.Type, Raw: e.AppendLine(nil)})
		}
		c.log.mu.Unlock()
		if len(out) > 0 {
			return out, nil
		}
		if closed {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *memCursor) Close() error { return nil }

// play is a model that answers with the next function of its list.
type play struct {
	t    *testing.T
	mu   sync.Mutex
	next []answer
	reqs []model.Request
}

type answer func(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error)

func (p *play) Provider() string { return "script" }

func (p *play) Generate(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
	p.mu.Lock()
	p.reqs = append(p.reqs, req)
	if len(p.next) == 0 {
		p.mu.Unlock()
		return model.Response{}, &model.Error{Code: model.CodeScriptExhausted, Message: "the test has no more answers"}
	}
	f := p.next[0]
	p.next = p.next[1:]
	p.mu.Unlock()
	return f(ctx, req, sink)
}

func says(text string) answer {
	return func(_ context.Context, _ model.Request, sink func(model.Delta)) (model.Response, error) {
		sink(model.Delta{Kind: session.BlockText, Text: text})
		return model.Response{Text: text, Finish: model.FinishStop, Usage: &session.Usage{InputTokens: 1, OutputTokens: 1}}, nil
	}
}

// calls is "name:id" or "name:id:arguments" each.
func calls(specs ...string) answer {
	return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		r := model.Response{Finish: model.FinishToolCalls}
		for _, s := range specs {
			p := strings.SplitN(s+"::", ":", 4)
			args := p[2]
			if args == "" {
				args = "{}"
			}
			r.Calls = append(r.Calls, session.Call{Name: p[0], ID: p[1], Arguments: args})
		}
		return r, nil
	}
}

func fails(e *model.Error) answer {
	return func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{}, e
	}
}

// fn is a tool of the tests.
type fn struct {
	name   string
	traits tool.Traits
	run    func(ctx context.Context, c tool.Call) tool.Result
}

func (f fn) Spec() session.ToolSpec {
	return session.ToolSpec{Name: f.name, Description: f.name, Parameters: json.RawMessage(`{"type":"object"}`)}
}
func (f fn) Traits() tool.Traits                              { return f.traits }
func (f fn) Run(ctx context.Context, c tool.Call) tool.Result { return f.run(ctx, c) }

func ok(text string) func(context.Context, tool.Call) tool.Result {
	return func(context.Context, tool.Call) tool.Result { return tool.Result{Content: text} }
}

// world is an agent with its fakes.
type world struct {
	*Agent
	t   *testing.T
	log *memLog
	llm *play
}

func start(t *testing.T, log *memLog, llm *play, change func(*Options), tools ...tool.Tool) *world {
	t.Helper()
	reg, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	llm.t = t
	var n atomic.Int64
	o := Options{
		SessionID: "s1", Model: llm, Config: session.RequestConfig{Provider: "script", Model: "m"}, System: "be good", Window: 100_000,
		Tools: reg, Settings: session.Settings{Mode: "legacy", Timeout: 120, Permission: "workspace-write", Approve: "ask"}, MaxSteps: 20,
		Now: time.Now, NewID: func() string { return fmt.Sprintf("id-%p-%d", log, n.Add(1)) },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	if change != nil {
		change(&o)
	}
	var state session.State
	if err := log.replay(state.Apply); err != nil {
		t.Fatal(err)
	}
	closers, err := state.Repair(o.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	return &world{New(log, state, closers, o), t, log, llm}
}

// run runs a task and returns the result and its ending.
func (w *world) run(task string) (session.RunResult, session.Reason) {
	w.t.Helper()
	res, end, err := w.Run(w.t.Context(), RunOptions{Input: Task(task)}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, end
}

func text(s string) []session.Block { return []session.Block{{Type: session.BlockText, Text: s}} }

// types is the log as one word an event; tool results with call and code.
func (w *world) types(from int) string {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	var out []string
	for _, e := range w.log.events[from:] {
		word := e.Type
		switch e.Type {
		case session.TypeToolResult:
			var r session.ToolResult
			if err := json.Unmarshal(e.Data, &r); err != nil {
				w.t.Fatal(err)
			}
			word = "result(" + r.Message.ToolCallID
			if r.Error != nil {
				word += " " + r.Error.Code
			}
			word += ")"
		case session.TypeToolCall:
			var c session.ToolCall
			if err := json.Unmarshal(e.Data, &c); err != nil {
				w.t.Fatal(err)
			}
			word = "call(" + c.CallID + ")"
		case session.TypeTurnEnd:
			var c session.TurnEnd
			if err := json.Unmarshal(e.Data, &c); err != nil {
				w.t.Fatal(err)
			}
			word = "end(" + c.Reason.Kind + ")"
		case session.TypeInboxSpliced:
			var s session.InboxSpliced
			if err := json.Unmarshal(e.Data, &s); err != nil {
				w.t.Fatal(err)
			}
			switch {
			case s.Outcome != "":
				word = "discard"
			case s.RemovedCount > 0:
				word = "claim"
			default:
				word = "receipt"
			}
		}
		out = append(out, strings.TrimPrefix(word, "request/"))
	}
	return strings.Join(out, " ")
}

func (w *world) wantTypes(from int, want string) {
	w.t.Helper()
	if got := w.types(from); got != strings.Join(strings.Fields(want), " ") {
		w.t.Errorf("log\n got %s\nwant %s", got, want)
	}
}

// heard is the last request as one word a message.
func (w *world) heard() string {
	w.llm.mu.Lock()
	defer w.llm.mu.Unlock()
	if len(w.llm.reqs) == 0 {
		return ""
	}
	var out []string
	for _, m := range w.llm.reqs[len(w.llm.reqs)-1].Messages {
		out = append(out, string(m.Role[0])+":"+m.Text)
	}
	return strings.Join(out, " | ")
}

var errDisk = errors.New("no space left on device")
