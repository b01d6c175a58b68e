import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";

import { Client, MalformedEvent, ServerDied } from "../lib/index.js";

// A server that does not keep the protocol. Its arguments are its answers to
// initialize and to a prompt, and what it says behind them; then it does what $END
// says and, if it goes on, neither reads nor ends by itself.
const broken = `
echo "last words" >&2
read -r l; printf '%s\\n' "$1"
read -r l; shift; printf '%s\\n' "$@"
eval "$END"
exec sleep 1000`;

const initialized = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';
const receipt = '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}';

const cases = JSON.parse(readFileSync(new URL("../../testdata/broken.json", import.meta.url), "utf8"));

// A run without a timeout ends with the server's error, and so does what comes later.
describe("servers that break the protocol", { concurrency: true }, () => {
  for (const { name, initialize = initialized, prompt = receipt, behind = [], end = "", malformed, error } of cases) {
    test(name, async () => {
      const check = (err) => {
        assert.ok(err instanceof ServerDied, String(err));
        assert.ok(err.message.includes(error), err.message);
        assert.equal(err.stderr, "last words");
        return true;
      };
      let c;
      try {
        c = await Client.start({ command: ["sh", "-c", broken, "sh", initialize, prompt, ...behind], env: { END: end } });
      } catch (err) {
        check(err);
        return;
      }
      const told = c.events();
      await assert.rejects(c.run("go"), malformed ? (err) => err instanceof MalformedEvent && err.message.includes(malformed) : check);
      await assert.rejects(c.sessions(), check);
      await assert.rejects(async () => {
        for await (const n of told) assert.ok(n);
      }, check);
      await c.close();
    });
  }
});
