package code

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/tool"
)

// host is what runs sub-calls in the tests: each in a goroutine of its own.
type host struct {
	t     *testing.T
	tools map[string]func(ctx context.Context, args string) tool.Result
	wg    sync.WaitGroup

	mu    sync.Mutex
	calls []string
}

func (h *host) dispatch(ctx context.Context, name, args string, done func(tool.Result)) {
	h.mu.Lock()
	h.calls = append(h.calls, name+args)
	h.mu.Unlock()
	f := h.tools[name]
	if f == nil {
		f = func(context.Context, string) tool.Result {
			return tool.Errorf(tool.CodeUnknownTool, "there is no tool %q", name)
		}
	}
	h.wg.Go(func() { done(f(ctx, args)) })
}

func small() limits {
	l := usual
	l.compute, l.wall, l.grace = 2*time.Second, 10*time.Second, time.Second
	return l
}

func (h *host) run(code string) tool.Result { return h.runWith(context.Background(), small(), code) }

func (h *host) runWith(ctx context.Context, l limits, code string) tool.Result {
	h.t.Helper()
	raw, err := json.Marshal(arguments{Code: code})
	if err != nil {
		h.t.Fatal(err)
	}
	r := newTool(l).Run(ctx, tool.Call{ID: "c", Arguments: raw, Dispatch: h.dispatch})
	h.wg.Wait()
	return r
}

func newHost(t *testing.T) *host {
	return &host{t: t, tools: map[string]func(context.Context, string) tool.Result{
		"echo": func(_ context.Context, args string) tool.Result { return tool.Result{Content: args} },
		"fail": func(context.Context, string) tool.Result { return tool.Errorf("FS_NOT_FOUND", "there is no file x") },
		"ask_user_question": func(context.Context, string) tool.Result {
			return tool.Result{Content: `{"pending":true,"callId":"c:ptc:1","message":"later"}`}
		},
	}}
}

func TestX(t *testing.T) {
	for _, c := range []string{
		`return 1`, `console.log("a", {b:1}, [1n], new Map([[1,2]]), undefined, null, Symbol("x"), new Error("e"))`,
		`return await tools.echo({a:1})`, `await tools.fail()`, `try { await tools.fail({}) } catch (e) { return [e.code, e.message, e instanceof Error] }`,
		"const x = 1\n\nfoo.bar", "let x = \n\n;;)", "x(", `return (await tools.ask_user_question({questions:[]})).pending`,
		`await new Promise(() => {})`, `return 1n`, `const a = {}; a.a = a; return a`, `return tools`, `throw 5`, `throw {a:1}`, `null.x`,
		`function f() { return f() + 1 } f()`,
		"function f() {\n throw new TypeError('no') }\nfunction g() { f() }\ng()",
		`return await Promise.all([1,2,3].map(n => tools.echo({n})))`,
		`[1,2].forEach(async n => { await tools.echo({n}); console.log("done", n) })`,
		`const a = []; for (;;) a.push(new Array(1000).fill(a.length))`,
		`for (;;) {}`, `async function f() { for (;;) await null } await f()`,
		`return Object.getOwnPropertyNames(globalThis).filter(n => n[0] == "$").length`,
		`return typeof std + typeof os + typeof setTimeout`,
		`const m = await import("os"); return m`,
		`Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)`,
		`await tools.echo(() => 1)`, `const a = {}; a.a = a; await tools.echo(a)`,
		`Promise.prototype.then = null; Array.prototype[Symbol.iterator] = null; JSON.stringify = null; const t = await tools.echo({}); console.log(t); return 5`,
		`new Array(4294967295).indexOf(1)`,
		`}); for(;;){}; (async () => {`,
		`(async () => { throw new Error("lost") })()`,
		`tools.fail()`,
	} {
		h := newHost(t)
		begin := time.Now()
		r := h.run(c)
		fmt.Printf("--- %s  %v\n%s|%.300s|\n", c, time.Since(begin).Round(time.Millisecond), r.Code, r.Content)
	}
	_ = strings.Join
}
