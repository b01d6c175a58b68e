package code

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/quickjs"

	"deepseek/internal/tool"
)

// runner runs the code of one call. The goroutine of loop owns the engine and
// all fields from vm on; it ends with the call.
type runner struct {
	call   tool.Call
	code   string
	limits limits
	ctx    context.Context // ends with the call, or with the reason why it must
	stop   context.CancelCauseFunc
	clock  *clock
	output *output
	engine atomic.Pointer[quickjs.VM]
	made   atomic.Int64 // sub-calls
	ended  chan ended   // sub-calls that have ended

	vm      *quickjs.VM
	enter   quickjs.Value // the prelude's way in
	lost    *rejections
	untrack func()
	used    time.Duration // of compute
	open    int           // sub-calls that have not ended
	traffic int           // bytes
	current tool.Result   // of the sub-call that is being settled
	settled bool          // the code's function has ended
	ending  ending
}

// ended is a sub-call that has ended.
type ended struct {
	number int64
	result tool.Result
}

// ending is how the code ended.
type ending struct {
	returned string // JSON, "" for undefined
	fault    error  // nil = it came to its end
}

func newRunner(ctx context.Context, call tool.Call, code string, l limits) *runner {
	r := &runner{call: call, code: code, limits: l, output: &output{left: l.output}, ended: make(chan ended)}
	ctx, r.stop = context.WithCancelCause(ctx)
	r.clock = newClock(l.wall, func() {
		r.stop(faultf(CodeTimeout, "the code ran for %v, the most it may, not counting time in which a person was waited for", l.wall))
	})
	r.ctx = tool.WithRest(ctx, r.clock.rest)
	return r
}

// run runs the code to its end and returns when its engine is freed. An engine
// looks now and then whether it is to stop, but some built-in operations do not
// look, such as searching an array of four billion elements. One that still
// runs when the grace is over is left behind, counted in stuck, until it ends
// by itself: that is the only thing that can outlive a call.
func (r *runner) run(stuck *atomic.Int32) ending {
	defer r.stop(nil)
	defer r.clock.stop()
	result := make(chan ending, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		result <- r.safely()
	}()
	select {
	case end := <-result:
		<-gone
		return r.judge(end)
	case <-r.ctx.Done():
	}
	grace := time.NewTimer(r.limits.grace)
	defer grace.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		// The engine forgets a request that comes just before it is entered.
		if vm := r.engine.Load(); vm != nil {
			vm.Interrupt()
		}
		select {
		case end := <-result:
			<-gone
			return r.judge(end)
		case <-again.C:
		case <-grace.C:
			stuck.Add(1)
			go func() {
				<-gone
				stuck.Add(-1)
			}()
			return r.judge(ending{fault: errStopped})
		}
	}
}

// errStopped ends the loop; why is the context's to say.
var errStopped = errors.New("stopped")

// judge finds the reason of an end that was brought about from outside.
func (r *runner) judge(end ending) ending {
	if !errors.Is(end.fault, errStopped) {
		return end
	}
	var f *fault
	if cause := context.Cause(r.ctx); !errors.As(cause, &f) {
		f = faultf(tool.CodeAborted, "the run was cancelled while the code ran")
	}
	return ending{fault: f}
}

// safely is loop without panics: an engine that fails must not end the program.
func (r *runner) safely() (end ending) {
	// The engine is C made Go, with memory of its own: a fault in there is a
	// panic of this goroutine instead of the program's end.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			end = ending{fault: faultf(tool.CodeInternal, "the JavaScript engine failed in a way it should not have: %v", p)}
		}
	}()
	return r.loop()
}

// loop is the code's life: it is entered, and again for each sub-call that has
// ended, until its function and all sub-calls have.
func (r *runner) loop() (end ending) {
	if err := r.load(); err != nil {
		return ending{fault: err}
	}
	defer func() {
		r.untrack()
		r.engine.Store(nil)
		r.enter.Free()
		err := r.vm.Close()
		if err != nil && end.fault == nil {
			end.fault = err
		}
	}()
	err := r.begin()
	for err == nil {
		if err = r.drain(); err != nil {
			break
		}
		if r.open == 0 {
			if !r.settled {
				return ending{fault: faultf(CodeError, "the code waits for a promise that nothing will settle: no sub-call is under way, and there are no timers")}
			}
			if lost := r.lost.list(); len(lost) > 0 && r.ending.fault == nil {
				r.ending.fault = r.forgotten(lost)
			}
			return r.ending
		}
		select {
		case e := <-r.ended:
			r.open--
			r.current = e.result
			if err = r.spend(len(e.result.Content)); err == nil {
				err = r.into(e.number)
			}
		case <-r.ctx.Done():
			err = errStopped
		}
	}
	return ending{fault: r.translate(err)}
}

// into enters the engine through the prelude: with the code's function, or with
// the number of a sub-call that has ended.
func (r *runner) into(what any) error {
	return r.js(func() error {
		_, err := r.enter.Call(quickjs.UndefinedValue, what)
		return err
	})
}

// drain runs what became ready, until nothing is. The engine returns after a
// million jobs at most.
func (r *runner) drain() error {
	for {
		more := false
		err := r.js(func() error {
			n, err := r.vm.ExecutePendingJobs()
			more = n >= 1<<20
			if more {
				err = nil // an aborted drain is no failure: compute bounds it
			}
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// js enters the engine and counts the time.
func (r *runner) js(f func() error) error {
	if r.ctx.Err() != nil {
		return errStopped
	}
	limit := time.AfterFunc(r.limits.compute-r.used, func() {
		r.stop(faultf(CodeTimeout, "the code computed for %v, the most it may; time in which it waits for tools does not count", r.limits.compute))
	})
	begin := time.Now()
	err := f()
	limit.Stop()
	r.used += time.Since(begin)
	if r.ctx.Err() != nil {
		return errStopped
	}
	return err
}

// spend counts bytes that go to and come from sub-calls.
func (r *runner) spend(n int) error {
	if r.traffic += n; r.traffic > r.limits.traffic {
		return faultf(CodeError, "arguments and results of the sub-calls have more than %d bytes together, the most they may; pass less, or split the work", r.limits.traffic)
	}
	return nil
}

// hostCall begins a sub-call and returns its number. Its error is thrown in the code.
func (r *runner) hostCall(name, args string) (any, error) {
	switch {
	case r.settled && r.ending.fault != nil:
		return nil, errors.New("the code has thrown, so it calls no more tools")
	case r.made.Load() >= int64(r.limits.calls):
		return nil, fmt.Errorf("the code has made %d sub-calls, the most it may", r.limits.calls)
	case len(args) > r.limits.arguments:
		return nil, fmt.Errorf("the arguments of %s have %d bytes, at most %d are allowed", name, len(args), r.limits.arguments)
	}
	if err := r.spend(len(args)); err != nil {
		return nil, err
	}
	number := r.made.Add(1)
	r.open++
	r.call.Dispatch(r.ctx, name, args, func(res tool.Result) {
		select {
		case r.ended <- ended{number, res}:
		case <-r.ctx.Done():
		}
	})
	return number, nil
}

// hostPrint keeps a line of the console.
func (r *runner) hostPrint(line string) {
	if strings.Contains(line, "<eval>") { // the stack of an error
		line = places(line)
	}
	if !r.output.line(strings.TrimSuffix(line, "\n")) {
		r.tooMuchOutput()
	}
}

// hostDone takes how the code's function ended.
func (r *runner) hostDone(how, text string) {
	r.settled = true
	switch {
	case how == "threw":
		r.ending.fault = r.thrown(text)
	case !r.output.reserve(len(text)):
		r.tooMuchOutput()
	case how == "returned":
		r.ending.returned = text
	}
}

func (r *runner) tooMuchOutput() {
	r.stop(faultf(CodeOutput, "console output and returned value have more than %d bytes together, the most they may; print less", r.limits.output))
	r.vm.Interrupt()
}
