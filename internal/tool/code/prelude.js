// What code finds beside the language: tools and console. It is evaluated before
// the code and keeps what it needs of the built-ins, which code may change. Its
// functions are named $host…: such frames are left out of stack traces.
(function () {
  const { $hostCall, $hostTake, $hostPrint, $hostDone } = globalThis;
  delete globalThis.$hostCall;
  delete globalThis.$hostTake;
  delete globalThis.$hostPrint;
  delete globalThis.$hostDone;

  const { apply } = Reflect, { stringify, parse } = JSON, { then } = Promise.prototype;
  const P = Promise, E = Error, S = String, M = Map, T = Set, from = Array.from;
  const waiting = { __proto__: null }; // by number of the sub-call

  class ToolError extends E {
    constructor(message, code, stack) {
      super(message);
      this.code = code;
      this.stack = stack;
    }
  }
  ToolError.prototype.name = "ToolError";

  globalThis.tools = new Proxy({ __proto__: null }, {
    get(_, name) {
      switch (name) { // what the language itself looks for is no call
        case "then": case "toJSON": case "toString": case "valueOf": case "constructor": return undefined;
      }
      if (typeof name !== "string") return undefined;
      return function $hostTool(args) {
        return new P(function $hostWait(resolve, reject) {
          const text = args === undefined ? "{}" : stringify(args);
          const id = $hostCall(name, text === undefined ? "null" : text);
          waiting[id] = { resolve, reject, stack: new E().stack, json: name === "ask_user_question" };
        });
      };
    },
  });

  function $hostSettle(id) {
    const w = waiting[id];
    delete waiting[id];
    try {
      const r = $hostTake();
      if (r[0] === "") w.resolve(w.json ? parse(r[1]) : r[1]);
      else w.reject(new ToolError(r[1], r[0], w.stack));
    } catch (e) {
      w.reject(e);
    }
  }

  function $hostError(e) {
    try {
      if (e instanceof E) return e.name + ": " + e.message + "\n" + (typeof e.stack === "string" ? e.stack : "");
    } catch {}
    return "uncaught value: " + $hostFormat(e);
  }

  function $hostInner(_, v) {
    if (typeof v === "bigint") return S(v) + "n";
    if (v instanceof M || v instanceof T) return from(v);
    if (v instanceof E) return S(v);
    return v;
  }

  function $hostFormat(v) {
    try {
      switch (typeof v) {
        case "string": return v;
        case "bigint": return S(v) + "n";
        case "function": return "[function " + v.name + "]";
        case "object":
          if (v === null) return "null";
          if (v instanceof E) return $hostError(v);
          const text = stringify(v, $hostInner);
          if (text !== undefined) return text;
      }
      return S(v);
    } catch (e) {
      return "[" + typeof v + " that cannot be shown: " + e + "]";
    }
  }

  const print = function $hostLog(...args) {
    let line = "";
    for (let i = 0; i < args.length; i++) line += (i ? " " : "") + $hostFormat(args[i]);
    $hostPrint(line);
  };
  globalThis.console = { log: print, info: print, debug: print, warn: print, error: print, dir: print, table: print };

  function $hostReturned(v) {
    let text;
    try {
      text = stringify(v);
    } catch (e) {
      $hostDone("threw", "the returned value cannot be written as JSON: " + $hostError(e));
      return;
    }
    if (text === undefined) $hostDone("undefined", "");
    else $hostDone("returned", text);
  }

  function $hostThrew(e) {
    $hostDone("threw", $hostError(e));
  }

  // The one way in: begins the code, or settles a sub-call by its number.
  return function $hostEnter(what) {
    if (typeof what === "function") apply(then, apply(what, undefined, []), [$hostReturned, $hostThrew]);
    else $hostSettle(what);
  };
})()
