import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { MalformedEvent } from "../lib/index.js";
import { Interval } from "../lib/interval.js";

const cases = JSON.parse(readFileSync(new URL("../../testdata/intervals.json", import.meta.url), "utf8"));

test("questions stand in a result as they were asked", () => {
  const questions = [
    { id: "port", question: "Which ports?", options: [{ label: "8080" }, { label: "9090", description: "the new one" }], multi_select: true },
    { id: "name", question: "Which name?", header: "Name" },
  ];
  const open = { callId: "c1", state: "continued", queued: false, questions, answer: "deepseek answer s c1" };
  assert.deepStrictEqual(new Interval().result([{ ...open, askedAt: 1 }]).questions, [open]);
});

function folded(all) {
  const i = new Interval();
  all.forEach((e, n) => {
    if (n === 1) i.receipt("s", "m1"); // the prompt is answered in the middle
    assert.equal(i.feed("event", e), false);
  });
  assert.equal(i.feed("status", "running"), false);
  assert.equal(i.feed("status", "idle"), true);
  return i.result([]);
}

for (const c of cases) {
  test(c.name, () => {
    if (c.malformed) {
      assert.throws(() => folded(c.events), MalformedEvent);
      return;
    }
    const { first, ...want } = c.result;
    const { finalResponse, finishReason, usage, steps, denied, error, events } = folded(c.events);
    assert.deepEqual({ finalResponse, finishReason, usage, steps, denied, ...(error && { error }) }, want);
    assert.equal(events[0].seq, first);
  });
}
