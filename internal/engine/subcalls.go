package engine

import (
	"context"
	"fmt"
	"sync"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// CodeNotFromCode refuses a sub-call of a tool that only the model itself may call.
const CodeNotFromCode = "NOT_FROM_CODE"

// subCalls runs the calls that the code of one call makes: in the order they
// were made, those that are marked parallel or wait for a person beside each
// other, at most ten, every other alone. mu owns all of it but the fields that
// never change. It is never held over a tool, the disk or a callback; the
// order of locks is mu, the batch's, the agent's.
//
// A question of the code that ends without an answer holds nothing back: the
// code has the outcome in hand and goes on, and the calls beside it in the
// model's message were made in the knowledge that the code decides.
type subCalls struct {
	batch  *batch
	parent *callRun
	ctx    context.Context // ends with the parent's body
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines of sub-calls

	mu       sync.Mutex
	closed   bool // none begins any more
	made     int
	waiting  []*subCall
	running  int
	alone    bool // the one that runs tolerates no other
	observed []session.Observed
}

type subCall struct {
	*callRun
	ctx  context.Context
	tell func(tool.Result)
}

func newSubCalls(ctx context.Context, b *batch, parent *callRun) *subCalls {
	ctx, cancel := context.WithCancel(ctx)
	return &subCalls{batch: b, parent: parent, ctx: ctx, cancel: cancel}
}

// dispatch implements tool.Call.Dispatch.
func (s *subCalls) dispatch(ctx context.Context, name, rawArguments string, done func(tool.Result)) {
	tools := s.batch.agent.tools()
	c := &callRun{waits: make(chan struct{}), parent: s.parent, Call: session.Call{Name: name, Arguments: rawArguments}}
	c.tool, c.args, c.invalid = tools.Check(name, rawArguments)
	if c.traits().TopLevel {
		r := tool.Errorf(CodeNotFromCode, "%s cannot be called from code; call it yourself, beside %s", name, s.parent.Name)
		c.invalid = &r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // by a body that has returned: nobody listens
		go done(refused())
		return
	}
	for c.ID == "" || s.batch.agent.usedCallID(c.ID) { // a model may have given a call such an id
		s.made++
		c.ID = fmt.Sprintf("%s:ptc:%d", s.parent.ID, s.made)
	}
	s.waiting = append(s.waiting, &subCall{c, ctx, done})
	s.next()
}

func refused() tool.Result {
	return tool.Errorf(session.CodeAbortedBefore, "the run was cancelled before this call was started; nothing was done")
}

// next starts what may start now, and refuses what may not start any more. The
// starts are logged here, in order. The caller holds mu.
func (s *subCalls) next() {
	for len(s.waiting) > 0 {
		c := s.waiting[0]
		switch stopped := s.ctx.Err() != nil || c.ctx.Err() != nil || s.batch.failed(); {
		case stopped:
			s.wg.Go(func() { c.tell(refused()) })
		case !s.fits(c):
			return
		default:
			if err := s.batch.start(c.callRun); err != nil {
				s.batch.fail(err)
				continue // and is refused
			}
			s.running++
			s.alone = !c.overlaps()
			s.wg.Go(func() { s.run(c) })
		}
		s.waiting = s.waiting[1:]
	}
}

func (s *subCalls) fits(c *subCall) bool {
	return s.running == 0 || s.running < parallelCalls && !s.alone && c.overlaps()
}

func (c *subCall) overlaps() bool {
	t := c.traits()
	return t.Parallel || t.Person
}

// run runs a sub-call that was started, and logs how it ended.
func (s *subCalls) run(c *subCall) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer context.AfterFunc(s.ctx, cancel)()
	defer cancel()
	b := s.batch
	b.call(ctx, c.callRun)
	b.mu.Lock()
	if c.done && !c.logged && b.logErr == nil {
		b.logErr = b.log(c.callRun)
	}
	r := c.result
	if !c.logged { // the log failed, which ends the run
		r = tool.Errorf(tool.CodeInternal, "what became of this call could not be logged")
	}
	b.mu.Unlock()
	s.mu.Lock()
	if r.Meta != nil {
		s.observed = append(s.observed, r.Meta.Observed...)
	}
	s.running--
	s.next()
	s.mu.Unlock()
	c.tell(r)
}

// end closes the sub-calls once the body of their parent has returned r: those
// that wait are refused, those that run are cancelled and waited for. What they
// have shown of files counts as shown by their parent.
func (s *subCalls) end(r tool.Result) tool.Result {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	s.next() // all that wait are refused
	s.mu.Unlock()
	s.wg.Wait()
	if len(s.observed) > 0 {
		meta := session.ToolMeta{}
		if r.Meta != nil {
			meta = *r.Meta
		}
		meta.Observed = append(meta.Observed, s.observed...)
		r.Meta = &meta
	}
	return r
}

// tellQuestions puts below the result of code that did not come to its end how
// the questions stand that it asked: a person's answer is in nobody else's hand
// any more. What stands there is never cut. Code that came to its end has told
// what it chose to tell.
func (b *batch) tellQuestions(c *callRun, r tool.Result) tool.Result {
	if c.parent != nil || r.Code == "" {
		return r
	}
	b.agent.View(func(st *session.State) { r.Content += b.redacted(st.CodeQuestions(c.ID)) })
	return r
}

// sub is the sub-call as the log knows it.
func (c *callRun) sub() session.PTCStart {
	return session.PTCStart{
		RootCallID: c.parent.ID, ParentCallID: c.parent.ID, SubCallID: c.ID, Name: c.Name, Arguments: c.Arguments,
	}
}

// logSub appends how a sub-call ended. The caller holds mu.
func (b *batch) logSub(c *callRun) error {
	end := session.PTC{PTCStart: c.sub(), IsError: c.result.Code != "", Content: c.result.Content}
	if end.IsError {
		end.Error = &session.ToolError{Name: tool.Brief(c.Name), Code: c.result.Code}
	}
	if err := b.agent.append(item{session.TypePTCDispatch, end}); err != nil {
		return err
	}
	c.logged = true
	return nil
}
