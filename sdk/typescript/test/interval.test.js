import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { MalformedEvent } from "../lib/index.js";
import { Interval } from "../lib/interval.js";

const cases = JSON.parse(readFileSync(new URL("../../testdata/intervals.json", import.meta.url), "utf8"));

for (const c of cases) {
  test(c.name, () => {
    const i = new Interval();
    c.events.forEach((e, n) => {
      if (n === 1) i.receipt("s", "m1"); // the prompt is answered in the middle
      assert.equal(i.feed("event", e), false);
    });
    assert.equal(i.feed("status", "running"), false);
    assert.equal(i.feed("status", "idle"), true);
    if (c.malformed) {
      assert.throws(() => i.result([]), MalformedEvent);
      return;
    }
    const { first, ...want } = c.result;
    const { finalResponse, finishReason, usage, steps, denied, error, events } = i.result([]);
    assert.deepEqual({ finalResponse, finishReason, usage, steps, denied, ...(error && { error }) }, want);
    assert.equal(events[0].seq, first);
  });
}
