package code

import (
	"context"
	"encoding/json"
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
	l.compute, l.wall, l.grace = 2*time.Minute, 4*time.Minute, 5*time.Second
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

func TestWhatCodePrintsAndReturns(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`return 1`, `return: 1`},
		{`return {a: [1, null]}`, `return: {"a":[1,null]}`},
		{`return null`, `return: null`},
		{`1`, ``},
		{`return () => 1`, ``}, // no JSON
		{`console.log("a"); console.error("b", 1); return 2`, "a\nb 1\nreturn: 2"},
		{
			`console.log({b: 1}, [1n], new Map([[1, 2]]), new Set([3]), undefined, null, Symbol("x"), 5n, f); function f() {}`,
			`{"b":1} ["1n"] [[1,2]] [3] undefined null Symbol(x) 5n [function f]` + "\n",
		},
		{`console.log(new TypeError("e"))`, "TypeError: e\n    at <anonymous> (line 1, column 26)\n"},
		{
			`const a = {}; a.a = a; console.log(a, {toJSON() { throw 1 }})`,
			"[object that cannot be shown: TypeError: circular reference] [object that cannot be shown: 1]\n",
		},
		{`console.log("é😀\u0000")`, "é😀\x00\n"},
		{`return await tools.echo({a: "é"})`, `return: "{\"a\":\"é\"}"`},
		{`return await tools.echo()`, `return: "{}"`},
		{`const q = await tools.ask_user_question({questions: []}); return [q.pending, q.callId]`, `return: [true,"c:ptc:1"]`},
		{
			`try { await tools.fail() } catch (e) { return [e.name, e.code, e.message, e instanceof Error] }`,
			`return: ["ToolError","FS_NOT_FOUND","FS_NOT_FOUND: there is no file x",true]`,
		},
		{`return (await Promise.allSettled([tools.fail(), tools.echo({b: 1})])).map(r => r.status)`, `return: ["rejected","fulfilled"]`},
		// The call lasts until what it began has ended.
		{`[1, 2].forEach(async n => { await tools.echo({n}); console.log("done") })`, "done\ndone\n"},
		// A promise may be awaited after it failed.
		{`const p = tools.fail(); await tools.echo(); try { await p } catch (e) { return e.code }`, `return: "FS_NOT_FOUND"`},
		{`await tools; return JSON.stringify(tools) + tools.then`, `return: "{}undefined"`},
		{"// a comment at the end", ""},
		{`for await (const x of [tools.echo(), 2]) console.log(x)`, "{}\n2\n"},
	} {
		if got := newHost(t).run(c.code); got.Code != "" || got.Content != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.code, got.Content, c.want)
		}
	}
}

func TestFailuresAreToldWithTheirPlaces(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`throw new TypeError("no")`, "TypeError: no\n    at <anonymous> (line 1, column 20)"},
		{"const x = 1\n\nfoo.bar", "ReferenceError: 'foo' is not defined\n    at <anonymous> (line 3, column 1)"},
		{"function f() {\n throw new Error('no')\n}\nf()", "Error: no\n    at f (line 2, column 17)\n    at <anonymous> (line 4, column 2)"},
		{"let x =\n;;", "SyntaxError: unexpected token in expression: ';'\n    at line 2, column 1"},
		{"x)", "SyntaxError: expecting ';'\n    at line 1, column 2"},
		{`throw {a: 1}`, `uncaught value: {"a":1}`},
		{`throw null`, `uncaught value: null`},
		{"await tools.echo()\nawait tools.fail()", "ToolError: FS_NOT_FOUND: there is no file x\n    at <anonymous> (line 2, column 17)\nSub-calls made: 2. What they did stands."},
		{`console.log("so far"); null.x`, "TypeError: cannot read property 'x' of null\n    at <anonymous> (line 1, column 28)\nOutput so far:\nso far\n"},
		{`return 1n`, "the returned value cannot be written as JSON: TypeError: Do not know how to serialize a BigInt"},
		{`await new Promise(() => {})`, "the code waits for a promise that nothing will settle: no sub-call is under way, and there are no timers"},
		{`const a = {}; a.a = a; await tools.echo(a)`, "TypeError: circular reference\n    at <anonymous> (line 1, column 40)"},
		{`(async () => { throw new Error("lost") })(); return 1`, "the code ended, but failures were lost since nothing awaited their promises:\nError: lost\n    at <anonymous> (line 1, column 31)\n    at <anonymous> (line 1, column 42)\nOutput so far:\nreturn: 1"},
		{
			`tools.fail(); Promise.reject({toString() { throw 1 }})`,
			"the code ended, but failures were lost since nothing awaited their promises:\na value that cannot be shown\nToolError: FS_NOT_FOUND: there is no file x\n    at <anonymous> (line 1, column 11)\nSub-calls made: 1. What they did stands.",
		},
		// What has thrown begins nothing more.
		{
			`(async () => { await tools.echo(); try { await tools.echo() } catch (e) { console.log(e.message) } })(); throw 1`,
			"uncaught value: 1\nSub-calls made: 1. What they did stands.\nOutput so far:\nthe code has thrown, so it calls no more tools\n",
		},
		{
			"Promise.reject(new Error('a'))\n\nPromise.reject(new Error('b')); const e = new Error('c'); e.stack = {}; Promise.reject(e); return 1",
			"the code ended, but failures were lost since nothing awaited their promises:\nError: a\n    at <anonymous> (line 1, column 25)\n" +
				"Error: b\n    at <anonymous> (line 3, column 25)\nError: c\nOutput so far:\nreturn: 1",
		},
		// The engine does not know where an import was.
		{`await import("os")`, "ReferenceError: could not load module 'os'; the code has no modules\n    at import (line 1, column 7)"},
		{"const n = 'fs'\n await import(n)", "ReferenceError: could not load module 'fs'; the code has no modules\n    at import (line 2, column 8)"},
		{
			"try { await import('a') } catch {}\nimport('b'); return 1",
			"the code ended, but failures were lost since nothing awaited their promises:\n" +
				"ReferenceError: could not load module 'b'; the code has no modules\n    at import (line 2, column 1)\nOutput so far:\nreturn: 1",
		},
		{"const f = n => import(n); try { await f('x') } catch {}\nawait import('y' + 1)", "ReferenceError: could not load module 'y1'; the code has no modules"},
		{`Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)`, "TypeError: cannot block in this thread\n    at <anonymous> (line 1, column 13)"},
	} {
		if got := newHost(t).run(c.code); got.Code != CodeError || got.Content != CodeError+": "+c.want {
			t.Errorf("%s\n got %q\nwant %q", c.code, got.Content, c.want)
		}
	}
}

func TestDeepRecursionIsAnError(t *testing.T) {
	if raceDetector {
		t.Skip("takes long under the race detector")
	}
	for code, want := range map[string]string{
		`function f() { return f() + 1 } f()`: "InternalError: stack overflow" + strings.Repeat("\n    at f (line 1, column 24)", maxFrames),
		`JSON.parse("[".repeat(1e6))`:         "SyntaxError: stack overflow\n    at <input>:1:4988\n    at <anonymous> (line 1, column 11)",
		`function g() { [1].map(g) } g()`:     "InternalError: stack overflow" + strings.Repeat("\n    at g (line 1, column 23)", maxFrames),
	} {
		if got := newHost(t).run(code); got.Code != CodeError || got.Content != CodeError+": "+want {
			t.Errorf("%s\n got %q\nwant %q", code, got.Content, want)
		}
	}
}

func TestCodeFindsNothingButTheLanguage(t *testing.T) {
	got := newHost(t).run(`return Object.getOwnPropertyNames(globalThis).filter(n =>
		/^[a-z$_]/.test(n) && !/^(parse|is|decode|encode|escape|unescape|undefined|eval|globalThis)/.test(n)).concat(
		["std", "os", "process", "require", "fetch", "setTimeout", "print", "WebAssembly", "Deno"].filter(n => n in globalThis))`)
	if want := `return: ["tools","console"]`; got.Content != want {
		t.Errorf("got %s, want %s", got.Content, want)
	}
}

// TestCodeThatSpoilsTheBuiltIns spoils them for itself only.
func TestCodeThatSpoilsTheBuiltIns(t *testing.T) {
	got := newHost(t).run(`for (const o of [Promise.prototype, Array.prototype, Map.prototype, Object.prototype, JSON, Reflect, String.prototype, Error.prototype])
		for (const n of Reflect.ownKeys(o)) { try { if (n !== "constructor") o[n] = () => { throw 1 } } catch {} }
	const t = await tools.echo({}); console.log(t); return 5`)
	if got.Code != "" && got.Code != CodeError {
		t.Errorf("%+v", got)
	}
}

// TestSubCallsOverlapWhileTheEngineWaits: none of them returns before all have begun.
func TestSubCallsOverlapWhileTheEngineWaits(t *testing.T) {
	h := newHost(t)
	var all sync.WaitGroup
	all.Add(5)
	h.tools["meet"] = func(context.Context, string) tool.Result {
		all.Done()
		all.Wait()
		return tool.Result{Content: "m"}
	}
	got := h.run(`return (await Promise.all([1, 2, 3, 4, 5].map(n => tools.meet({n})))).join("")`)
	if got.Content != `return: "mmmmm"` {
		t.Errorf("%+v", got)
	}
	if want := `meet{"n":1} meet{"n":2} meet{"n":3} meet{"n":4} meet{"n":5}`; strings.Join(h.calls, " ") != want {
		t.Errorf("dispatched %q", h.calls)
	}
}
