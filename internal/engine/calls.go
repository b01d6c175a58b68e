package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// parallelCalls is how many calls that are marked parallel overlap.
const parallelCalls = 10

// CodeNotStartedPending is the result of a call that was not started since a
// question beside it ended without an answer.
const CodeNotStartedPending = "NOT_STARTED_QUESTION_PENDING"

// callRun is one call of a message on its way to a result.
type callRun struct {
	session.Call
	tool    tool.Tool
	args    json.RawMessage
	invalid *tool.Result // why it cannot run
	parent  *callRun     // of a sub-call: whose code made it
	result  tool.Result
	done    bool // result is set
	logged  bool // the result stands in the log

	waits chan struct{} // closed when a person has been asked, or the call has ended
	once  sync.Once
}

// asked lets the next call that asks a person begin.
func (c *callRun) asked() { c.once.Do(func() { close(c.waits) }) }

// batch runs the calls of one assistant message. Its mutex guards the calls'
// outcomes, which tools report from their own goroutines.
type batch struct {
	agent      *Agent
	turn, step int
	calls      []*callRun

	mu     sync.Mutex
	logErr error
}

// runCalls gives every call its result. An error means that the log failed.
func (a *Agent) runCalls(ctx context.Context, turn, step int, calls []session.Call) error {
	b := &batch{agent: a, turn: turn, step: step}
	tools := a.tools()
	for _, c := range calls {
		r := &callRun{Call: c, waits: make(chan struct{})}
		r.tool, r.args, r.invalid = tools.Check(c.Name, c.Arguments)
		b.calls = append(b.calls, r)
	}
	var unanswered []string // calls whose questions have no answer
	for i := 0; i < len(b.calls); {
		group := b.calls[i : i+groupLen(b.calls[i:])]
		i += len(group)
		if len(unanswered) > 0 {
			group = b.holdBack(group, unanswered)
		}
		b.run(ctx, group)
		if err := b.commit(); err != nil {
			return err
		}
		for _, c := range group {
			if id := c.result.Unanswered; id != "" && !slices.Contains(unanswered, id) {
				unanswered = append(unanswered, id)
			}
		}
	}
	return nil
}

// traits are those of the call's tool; an unknown tool has none.
func (c *callRun) traits() tool.Traits {
	if c.tool == nil {
		return tool.Traits{}
	}
	return c.tool.Traits()
}

// groupLen is how many of the calls, from the first on, may run at the same time.
// One that cannot run, as its arguments are wrong, parts no others of its tool.
func groupLen(calls []*callRun) int {
	first, n := calls[0].traits(), 1
	for n < len(calls) {
		if t := calls[n].traits(); !(first.Person && t.Person) && !(first.Parallel && t.Parallel) {
			break
		}
		n++
	}
	return n
}

// holdBack gives the calls that would change things a result without starting
// them, and returns the others.
func (b *batch) holdBack(group []*callRun, unanswered []string) []*callRun {
	var going []*callRun
	for _, c := range group {
		if t := c.traits(); c.invalid != nil || t.ReadOnly || t.Person {
			going = append(going, c)
			continue
		}
		b.finish(c, tool.Errorf(CodeNotStartedPending, "what was asked beside this call got no answer (callId %s), so this call was not started and nothing was done. "+
			"Issue it again if it does not depend on that answer.", strings.Join(unanswered, ", ")))
	}
	return going
}

// run starts the calls of a group and returns when all have a result.
func (b *batch) run(ctx context.Context, group []*callRun) {
	limit := parallelCalls
	if len(group) > 0 && group[0].traits().Person {
		limit = len(group)
	}
	slots := make(chan struct{}, limit)
	var wg sync.WaitGroup
	for _, c := range group {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil || b.failed() {
			b.finish(c, tool.Errorf(session.CodeAbortedBefore, "the run was cancelled before this call was started; nothing was done"))
			continue
		}
		if err := b.start(c); err != nil {
			b.fail(err)
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			defer c.asked()
			b.call(ctx, c)
			// Results are logged as soon as those before them are.
			_ = b.commit() // the error is kept for runCalls
		})
		if c.traits().Person {
			<-c.waits // people are asked in the order of the message
		}
	}
	wg.Wait()
}

// start logs that the call begins.
func (b *batch) start(c *callRun) error {
	if c.parent != nil {
		return b.agent.append(item{session.TypePTCDispatchStart, c.sub()})
	}
	return b.agent.append(item{session.TypeToolCall, session.ToolCall{
		Turn: b.turn, Step: b.step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments,
	}})
}

// call runs the body of one call, once its tool/call is on disk.
func (b *batch) call(ctx context.Context, c *callRun) {
	if c.invalid != nil {
		b.finish(c, b.fit(c, *c.invalid))
		return
	}
	if err := b.agent.sync(ctx); err != nil {
		if ctx.Err() != nil {
			b.finish(c, tool.Errorf(tool.CodeAborted, "the run was cancelled before this call did anything"))
			return
		}
		b.fail(err)
		return
	}
	b.finish(c, b.tellQuestions(c, b.fit(c, b.body(ctx, c))))
}

// body runs the tool, and returns when its sub-calls have ended too.
func (b *batch) body(ctx context.Context, c *callRun) (r tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = tool.Errorf(tool.CodeInternal, "the tool %s failed in a way it should not have: %v. What it did is not known.", c.Name, p)
		}
	}()
	call := tool.Call{
		ID: c.ID, Turn: b.turn, Step: b.step, Arguments: c.args,
		Commit: func(r tool.Result) error { return b.commitNow(c, r) }, Waiting: c.asked,
	}
	if c.parent == nil {
		subs := newSubCalls(ctx, b, c)
		defer func() { r = subs.end(r) }()
		call.Dispatch = subs.dispatch
	} else if c.traits().Person {
		defer tool.Rest(ctx)()
	}
	return c.tool.Run(ctx, call)
}

// fit cuts what is too long for a result; the whole goes beside the session, without secrets.
func (b *batch) fit(c *callRun, r tool.Result) tool.Result {
	r.Content = b.redacted(r.Content)
	return tool.Fit(r, b.agent.opts.Spill, c.ID)
}

// redacted is a text without secrets.
func (b *batch) redacted(text string) string {
	if redact := b.agent.opts.Redact; redact != nil && text != "" {
		return string(redact([]byte(text)))
	}
	return text
}

// finish sets the result, once.
func (b *batch) finish(c *callRun, r tool.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.done {
		c.result, c.done = b.agent.repeats.note(c.Name, c.Arguments, r), true
	}
}

// commitNow logs a result out of turn and returns once it is on disk.
func (b *batch) commitNow(c *callRun, r tool.Result) error {
	b.mu.Lock()
	if c.logged {
		b.mu.Unlock()
		return fmt.Errorf("call %s has a result already", c.ID)
	}
	c.result, c.done = r, true
	err := b.log(c)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.agent.sync(context.Background()) // somebody waits for the word, cancelled or not
}

// commit logs, in the model's order, the results that are there and have none missing before them.
func (b *batch) commit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if !c.done || b.logErr != nil {
			break
		}
		if !c.logged {
			b.logErr = b.log(c)
		}
	}
	return b.logErr
}

// log appends the call's result. The caller holds mu.
func (b *batch) log(c *callRun) error {
	if c.parent != nil {
		return b.logSub(c)
	}
	res := session.ToolResult{
		Turn: b.turn, Step: b.step, Meta: c.result.Meta,
		Message: session.ToolMessage{
			ID: b.agent.opts.NewID(), Role: string(session.RoleTool), ToolCallID: c.ID,
			Content: c.result.Content, IsError: c.result.Code != "",
		},
	}
	if c.result.Code != "" {
		res.Error = &session.ToolError{Name: tool.Brief(c.Name), Code: c.result.Code}
	}
	if err := b.agent.append(item{session.TypeToolResult, res}); err != nil {
		return err
	}
	c.logged = true
	return nil
}

func (b *batch) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logErr != nil
}

func (b *batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logErr == nil {
		b.logErr = err
	}
}
