import assert from "node:assert/strict";
import test from "node:test";

import * as deepseek from "../lib/index.js";
import { box } from "./box.js";

const { Client } = deepseek;

async function started(t, options) {
  const c = await Client.start(options);
  t.after(() => c.close());
  return c;
}

const oh = new Error("oh");

// The ways in which a handler does not answer.
const failing = {
  error: () => {
    throw oh;
  },
  rejection: async () => {
    throw oh;
  },
  label: (q) => [{ id: q.questions[0].id, selected: ["maybe"] }],
  type: () => "hello",
  empty: () => [],
  bigint: (q) => [{ id: q.questions[0].id, selected: [1n] }],
};

// What a failing handler leaves would wait for ever.
for (const [name, onApproval] of Object.entries(failing)) {
  test(`an approval whose handler fails is denied: ${name}`, async (t) => {
    const c = await started(t, box().options("approval.yaml", { permission: "workspace-write", onApproval }));
    await assert.rejects(c.run("go", { timeoutMs: 120_000 }), (err) => {
      assert.ok(err instanceof deepseek.HandlerFailed, String(err));
      assert.deepEqual([err.result.denied, err.result.finalResponse], [1, "after"]);
      return true;
    });
  });
}

for (const nothing of [null, undefined]) {
  test(`no answer to an approval is a no: ${nothing}`, async (t) => {
    const c = await started(t, box().options("approval.yaml", { permission: "workspace-write", onApproval: () => nothing }));
    const r = await c.run("go", { timeoutMs: 120_000 });
    assert.deepEqual([r.denied, r.finalResponse], [1, "after"]);
  });
}

for (const [name, mode] of [["label", { mode: "legacy" }], ["error", { timeout: -1 }], ["bigint", { mode: "legacy" }]]) {
  test(`a question without a time whose handler fails is closed: ${name}`, async (t) => {
    const c = await started(t, box().options("untimed.yaml", { ...mode, onQuestion: failing[name] }));
    await assert.rejects(c.run("go", { timeoutMs: 120_000 }), (err) => {
      assert.ok(err instanceof deepseek.HandlerFailed, String(err));
      assert.deepEqual([err.result.finishReason, err.result.finalResponse], ["completed", "after"]);
      return true;
    });
  });
}

test("an empty list of answers is a bad answer", async (t) => {
  const b = box();
  b.release();
  const c = await started(t, b.options("asking.yaml", { onQuestion: failing.empty }));
  await assert.rejects(c.run("go"), (err) => err.cause.code === "BAD_ANSWER" && /question "port" is not answered/.test(err.message));
});

test("a request that is too long is refused", async (t) => {
  const c = await started(t, box().options("plain.yaml"));
  const text = "\x01".repeat(11 << 20); // what counts is the line: six bytes for each
  await assert.rejects(c.run(text, { timeoutMs: 120_000 }), (err) => err.code === "INVALID_REQUEST" && /67108864/.test(err.message));
  assert.equal((await c.run("go")).finalResponse, "first");
});

// Answers the second request with an error that names none.
const unnamed = `
read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read l; echo '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}'
read l; echo '{"jsonrpc":"2.0","id":3,"result":{"sessions":[]}}'
cat >/dev/null`;

test("an error without an id fails the request in hand", async (t) => {
  const c = await started(t, { command: ["sh", "-c", unnamed] });
  await assert.rejects(c.run("go", { timeoutMs: 120_000 }), { code: "INVALID_REQUEST", message: "INVALID_REQUEST: what?" });
  assert.deepEqual(await c.sessions(), []);
});
