import assert from "node:assert/strict";
import test from "node:test";

import { Client, RunTimeout } from "../lib/index.js";
import { box } from "./box.js";

// On a slow machine it takes seconds to fail.
test("a run that is cut short tells of its handler", async (t) => {
  const oh = new Error("oh");
  const onQuestion = () => {
    throw oh;
  };
  const c = await Client.start(box().options("closed.yaml", { onQuestion, timeout: -1 }));
  t.after(() => c.close());
  await assert.rejects(c.run("go", { timeoutMs: 10_000 }), (err) => err instanceof RunTimeout && err.cause === oh && /oh/.test(err.message));
});
