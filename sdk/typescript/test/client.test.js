import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import * as deepseek from "../lib/index.js";
import { box, calls } from "./box.js";

const { Client } = deepseek;

async function started(t, options) {
  const c = await Client.start(options);
  t.after(() => c.close());
  return c;
}

test("run and go on", async (t) => {
  const b = box();
  const c = await started(t, b.options("plain.yaml"));
  const one = await c.run("go");
  assert.deepEqual([one.finalResponse, one.finishReason, one.steps, one.questions], ["first", "completed", 1, []]);
  const { sessionId } = one;
  const two = await c.run("go on", { sessionId });
  assert.deepEqual([two.finalResponse, two.sessionId], ["second", sessionId]);
  assert.ok(two.events[0].seq > one.events.at(-1).seq);
  let n = 0;
  for await (const e of c.read(sessionId)) assert.equal(e.seq, n++);
  assert.ok(n > 10);
  assert.deepEqual((await c.sessions()).map((s) => s.id), [sessionId]);
  const other = await started(t, b.options("plain.yaml"));
  await assert.rejects(other.run("x", { sessionId }), { code: "SESSION_BUSY" });
  await c.closeSession(sessionId);
  const three = await other.run("more", { sessionId });
  assert.deepEqual([three.finishReason, three.error.code], ["error", "SCRIPT_EXHAUSTED"]);
  await c.close();
  await assert.rejects(c.run("x"), deepseek.ClientClosed);
});

test("a handler answers", async (t) => {
  const b = box();
  const asked = [];
  const onQuestion = (q) => {
    asked.push(q);
    return [{ id: "port", selected: ["9090"] }];
  };
  const c = await started(t, b.options("asked.yaml", { onQuestion }));
  const r = await c.run("go");
  assert.deepEqual([r.finalResponse, r.questions], ["answered", []]);
  assert.deepEqual([asked[0].kind, asked[0].timed, asked[0].questions[0].options[1].label], ["question", true, "9090"]);
  assert.ok(asked[0].remainingMs > 0 && asked[0].remainingMs <= 600_000);
});

test("an answer behind its time is a late one", async (t) => {
  const b = box();
  let waiting;
  const gone = new Promise((resolve) => (waiting = resolve));
  const onQuestion = async () => {
    await gone;
    return [{ id: "port", selected: ["8080"] }];
  };
  const c = await started(t, b.options("asking.yaml", { onQuestion }));
  const told = c.events();
  const following = (async () => {
    for await (const n of told) {
      if (calls(n, "wait1")) waiting();
      if (n.event?.type === "agent/inbox/spliced" && JSON.stringify(n.event).includes("answer_to_pending")) b.release();
    }
  })();
  const r = await c.run("go");
  await told.return();
  await following;
  assert.deepEqual([r.finalResponse, r.questions], ["answered", []]);
  assert.match(JSON.stringify(r.events), /user-question-reply/);
});

test("a handler that fails leaves the question", async (t) => {
  const b = box();
  b.release();
  const cause = new Error("oh");
  const c = await started(t, b.options("asking.yaml", { onQuestion: () => { throw cause; } }));
  await assert.rejects(c.run("go"), (err) => {
    assert.ok(err instanceof deepseek.HandlerFailed);
    assert.equal(err.cause, cause);
    const [q] = err.result.questions;
    assert.deepEqual([q.callId, q.state, q.answer], ["ask1", "continued", `deepseek answer ${err.result.sessionId} ask1`]);
    return true;
  });
});

test("one run of a session at a time", async (t) => {
  const b = box();
  const c = await started(t, b.options("waiting.yaml"));
  const told = c.events();
  const run = c.run("go");
  for await (const n of told) {
    if (!calls(n, "wait1")) continue;
    await assert.rejects(c.run("x", { sessionId: n.sessionId }), deepseek.RunInProgress);
    break;
  }
  b.release();
  assert.equal((await run).finalResponse, "late");
});

test("a timeout cancels the run", async (t) => {
  const b = box();
  const c = await started(t, b.options("second.yaml"));
  const { sessionId } = await c.run("first");
  const told = c.events({ sessionId });
  await assert.rejects(c.run("go", { sessionId, timeoutMs: 1000 }), (err) => err instanceof deepseek.RunTimeout && err.sessionId === sessionId);
  for await (const n of told) if (n.params.status === "idle") break; // the command would wait for ever
  const ends = [];
  for await (const e of c.read(sessionId)) if (e.type === "turn/end") ends.push(e.data.reason.kind);
  assert.match(ends.join(), /^completed(,aborted)?$/); // a machine may be so slow that the turn has not begun
  b.release();
  assert.equal((await c.run("go on", { sessionId })).finalResponse, "late");
});

// Answers the second request when it may, and notes what comes behind it.
const slow = `
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; until [ -e "$0/go" ]; do sleep 0.02; done; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}'
read -r l; echo "$l" >"$0/third"; echo '{"jsonrpc":"2.0","method":"session.status","params":{"sessionId":"s","status":"idle"}}'
cat >/dev/null`;

test("a timeout cancels the run though its prompt is not answered yet", async (t) => {
  const b = box();
  const c = await started(t, { command: ["sh", "-c", slow, b.ws] });
  const told = c.events({ sessionId: "s" });
  await assert.rejects(c.run("go", { timeoutMs: 1 }), deepseek.RunTimeout);
  b.release();
  await told.next();
  const third = JSON.parse(readFileSync(`${b.ws}/third`, "utf8"));
  assert.deepEqual([third.method, third.params], ["session/cancel", { sessionId: "s", keepInbox: true }]);
});

test("servers that are not there, or end", async (t) => {
  const b = box();
  await assert.rejects(Client.start({ command: [`${b.ws}/nothing`] }), deepseek.ServerNotFound);
  for (const [command, want] of [
    ["exit 3", /status 3/],
    ["echo no key >&2; exit 1", /no key/],
    ["echo hi", /not understood/],
    ["kill -9 $$", /SIGKILL/],
  ]) {
    await assert.rejects(Client.start({ command: ["sh", "-c", command] }), (err) => err instanceof deepseek.ServerDied && want.test(err.message));
  }
  await assert.rejects(Client.start({ command: ["sleep", "1000"], requestTimeoutMs: 100 }), deepseek.RequestTimeout);
  await assert.rejects(Client.start(b.options("plain.yaml", { mode: "legacy", timeout: 5 })), { code: "INVALID_PARAMS", path: "timeout" });
});

test("a run in hand ends with the client", async (t) => {
  const b = box();
  const c = await started(t, b.options("waiting.yaml"));
  const told = c.events();
  const run = assert.rejects(c.run("go"), deepseek.ClientClosed);
  for await (const n of told) if (calls(n, "wait1")) break;
  await c.close();
  await run;
});

// Without it a strict program of es2022 does not compile; test/types.ts is such a program.
test("the types name the library of Symbol.asyncDispose", () => {
  const types = readFileSync(new URL("../lib/index.d.ts", import.meta.url), "utf8");
  assert.ok(types.includes("Symbol.asyncDispose"));
  assert.match(types, /^\/\/\/ <reference lib="esnext.disposable" \/>$/m);
});
