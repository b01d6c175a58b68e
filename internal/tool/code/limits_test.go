package code

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/tool"
)

func TestLimitsAreNamedAndTheOutputIsKept(t *testing.T) {
	const kept = `console.log("kept"); `
	for _, c := range []struct {
		name, code, want, says string
		change                 func(*limits)
	}{
		{"an endless loop", `for (;;) {}`, CodeTimeout, "computed for 1s", func(l *limits) { l.compute = time.Second }},
		{"endless jobs", `for (;;) await null`, CodeTimeout, "computed for 1s", func(l *limits) { l.compute = time.Second }},
		{"endless catching", `for (;;) { try { for (;;) {} } catch {} finally { continue } }`, CodeTimeout, "", func(l *limits) { l.compute = time.Second }},
		{"an endless expression", `/(a+)+$/.test("a".repeat(50) + "b")`, CodeTimeout, "", func(l *limits) { l.compute = time.Second }},
		{"an endless reason of a rejection", `Promise.reject({toString() { for (;;) {} }})`, CodeTimeout, "", func(l *limits) { l.compute = time.Second }},
		{"an endless way to JSON", `return {toJSON() { for (;;) {} }}`, CodeTimeout, "", func(l *limits) { l.compute = time.Second }},
		{"computing past the wall", `for (;;) {}`, CodeTimeout, "ran for 2s", func(l *limits) { l.wall = 2 * time.Second }},
		{"memory, bit by bit", `const a = []; for (let i = 0; ; i++) a.push("x".repeat(1 << 16) + i)`, CodeMemory, "", func(l *limits) { l.memory = 16 << 20 }},
		{"memory, at once", `return new Uint8Array(20 << 20).length`, CodeMemory, "", func(l *limits) { l.memory = 16 << 20 }},
		{"memory, through an unawaited promise", `const a = []; const f = async () => { for (let i = 0; ; i++) a.push("x".repeat(1 << 16) + i) }; await f()`, CodeMemory, "", func(l *limits) { l.memory = 16 << 20 }},
		{"output printed", `for (;;) console.log("x".repeat(100))`, CodeOutput, "1000 bytes", func(l *limits) { l.output = 1000 }},
		{"output returned", `return "x".repeat(1000)`, CodeOutput, "1000 bytes", func(l *limits) { l.output = 1000 }},
		{"arguments", `await tools.echo({a: "x".repeat(1000)})`, CodeError, "have 1008 bytes, at most 1000", func(l *limits) { l.arguments = 1000 }},
		{"sub-calls", `for (;;) await tools.echo()`, CodeError, "has made 7 sub-calls, the most", func(l *limits) { l.calls = 7 }},
		{"bytes of sub-calls", `for (;;) await tools.echo({a: "xxxxxxxxxxxxxxxx"})`, CodeError, "more than 1000 bytes", func(l *limits) { l.traffic = 1000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if raceDetector && c.want == CodeMemory {
				t.Skip("takes minutes under the race detector")
			}
			t.Parallel()
			l := small()
			c.change(&l)
			got := newHost(t).runWith(t.Context(), l, kept+c.code)
			if got.Code != c.want || !strings.HasPrefix(got.Content, c.want+": ") || !strings.Contains(got.Content, c.says) || !strings.Contains(got.Content, "Output so far:\nkept\n") {
				t.Errorf("%s, %.300q", got.Code, got.Content)
			}
		})
	}
}

func TestMemoryThatWasGivenBackCanBeUsedAgain(t *testing.T) {
	if raceDetector {
		t.Skip("takes minutes under the race detector")
	}
	l := small()
	l.memory = 16 << 20
	got := newHost(t).runWith(t.Context(), l, `let a = []; try { for (let i = 0; ; i++) a.push("x".repeat(1 << 16) + i) } catch (e) { a = null; return e.message }`)
	if got.Content != `return: "out of memory"` {
		t.Errorf("%+v", got)
	}
}

func TestCancelStopsCodeThatComputesAndCodeThatWaits(t *testing.T) {
	for name, c := range map[string]string{
		"computes": `await tools.begun(); for (;;) {}`,
		"waits":    `await tools.begun(); await tools.wait()`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx, cancel := context.WithCancel(t.Context())
			h.tools["begun"] = func(context.Context, string) tool.Result { cancel(); return tool.Result{} }
			h.tools["wait"] = func(ctx context.Context, _ string) tool.Result {
				<-ctx.Done()
				return tool.Errorf(tool.CodeAborted, "stopped")
			}
			if got := h.runWith(ctx, small(), c); got.Code != tool.CodeAborted {
				t.Errorf("%+v", got)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := newHost(t).runWith(ctx, small(), `return 1`); got.Code != tool.CodeAborted {
		t.Errorf("cancelled before it began: %+v", got)
	}
}

// TestTheWallRestsWhileAPersonIsWaitedFor: an hour for an answer costs nothing,
// eleven minutes for a command are too long.
func TestTheWallRestsWhileAPersonIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		rests bool
		want  string
	}{"a person": {true, ""}, "a command": {false, CodeTimeout}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.tools["wait"] = func(ctx context.Context, _ string) tool.Result {
					if c.rests {
						defer tool.Rest(ctx)()
					}
					select {
					case <-time.After(11 * time.Minute):
					case <-ctx.Done():
					}
					return tool.Result{}
				}
				// Nine minutes of computing time are no computing: the engine waits.
				if got := h.runWith(t.Context(), usual, `await Promise.all([tools.wait(), tools.wait()]); await tools.wait()`); got.Code != c.want {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestTheClockCountsOnlyWhatIsNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var rang time.Duration
		c := newClock(10*time.Second, func() { rang = time.Since(begin) })
		time.Sleep(4 * time.Second)
		one, two := c.rest(), c.rest()
		time.Sleep(time.Minute)
		one()
		one() // to no effect
		time.Sleep(time.Minute)
		two()
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := 2*time.Minute + 10*time.Second; rang != want {
			t.Errorf("rang after %v, want %v", rang, want)
		}
		c.stop()
		c.rest()()
	})
}

// TestAnOperationThatCannotBeStoppedIsLeftBehind: the call returns in time, no
// other code runs beside what was left, and that ends by itself.
func TestAnOperationThatCannotBeStoppedIsLeftBehind(t *testing.T) {
	if raceDetector {
		t.Skip("takes minutes under the race detector")
	}
	l := small()
	l.compute, l.grace = 50*time.Millisecond, 50*time.Millisecond
	run := newTool(l)
	try := func(code string) tool.Result {
		raw, err := json.Marshal(arguments{Code: code})
		if err != nil {
			t.Fatal(err)
		}
		return run.Run(t.Context(), tool.Call{ID: "c", Arguments: raw, Dispatch: newHost(t).dispatch})
	}
	if got := try(`console.log("kept"); new Array(2e7).indexOf(1); console.log("late")`); got.Code != CodeTimeout || !strings.HasSuffix(got.Content, "kept\n") {
		t.Fatalf("%+v", got)
	}
	if got := try(`return 1`); !strings.Contains(got.Content, "cannot be stopped") {
		t.Fatalf("%+v", got)
	}
	for try(`return 1`).Code != "" { // the test's own time limit bounds this
		time.Sleep(time.Millisecond)
	}
}

// TestNothingIsLeftOfCode runs code that ends in all ways and counts goroutines
// and what the engine's tables hold.
func TestNothingIsLeftOfCode(t *testing.T) {
	if raceDetector {
		t.Skip("takes minutes under the race detector")
	}
	l := small()
	l.memory, l.compute, l.output = 16<<20, 50*time.Millisecond, 1000
	codes := []string{
		`return await tools.echo()`, `throw 1`, `)`, `for (;;) {}`, `const a = []; for (;;) a.push("x".repeat(1 << 16) + a.length)`,
		`for (;;) console.log("x".repeat(100))`, `await new Promise(() => {})`, `tools.fail()`, `globalThis.keep = tools.echo(); await new Promise(() => {})`,
		`const p = tools.echo(); p.p = p; globalThis.p = p; function* g() { yield p } const i = g(); i.next(); throw i`,
	}
	before := 0
	for round := range 6 {
		for _, c := range codes {
			newHost(t).runWith(t.Context(), l, c)
		}
		if round == 0 {
			before = runtime.NumGoroutine()
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // one that has said its last word may not be gone yet
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines after the first round, %d after the last", before, after)
	}
	tracked.Lock()
	defer tracked.Unlock()
	if n := len(tracked.byID); n > 0 {
		t.Errorf("%d engines are still tracked", n)
	}
}

func TestAnEngineThatPanicsEndsTheCallOnly(t *testing.T) {
	raw, err := json.Marshal(arguments{Code: `await tools.x()`})
	if err != nil {
		t.Fatal(err)
	}
	got := New().Run(t.Context(), tool.Call{ID: "c", Arguments: raw, Dispatch: func(context.Context, string, string, func(tool.Result)) {
		panic(errors.New("oh"))
	}})
	if got.Code != tool.CodeInternal {
		t.Errorf("%+v", got)
	}
}

func TestTheToolIsSoundAndSmall(t *testing.T) {
	r, err := tool.NewRegistry(New())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compile(); err != nil {
		t.Error(err)
	}
	s := r.Specs()[0]
	if n := len(s.Description) + len(s.Parameters); n > 900 {
		t.Errorf("%d bytes", n)
	}
	if got := newHost(t).run(" \n"); got.Code != tool.CodeInvalidArguments {
		t.Errorf("blank code: %+v", got)
	}
	if got := New().Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"code":"1"}`)}); got.Code != tool.CodeInternal {
		t.Errorf("no dispatcher: %+v", got)
	}
}

// FuzzCode: whatever the code is, the engine neither ends the program nor fails
// in a way that is not named.
func FuzzCode(f *testing.F) {
	for _, s := range []string{
		`return 1`, `)`, `}); (async () => {`, `await tools.echo({a: 1})`, "`${", `throw new Proxy({}, {get() { throw 1 }})`,
		`class A extends Promise {} ; return new A(() => {})`, `Promise = 1`, `return [1].map(async x => await tools.fail())`, `label: for (;;) break label`,
	} {
		f.Add(s)
	}
	l := small()
	l.memory, l.compute, l.wall, l.calls, l.output = 8<<20, 100*time.Millisecond, time.Second, 20, 10_000
	f.Fuzz(func(t *testing.T, code string) {
		got := newHost(t).runWith(t.Context(), l, code)
		switch got.Code {
		case "", CodeError, CodeTimeout, CodeMemory, CodeOutput, tool.CodeInvalidArguments:
		default:
			t.Errorf("%q: %+v", code, got)
		}
	})
}
