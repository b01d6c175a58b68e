// Performs the run of testdata/steered.yaml in the folder given and prints its result as JSON, for comparison.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Client } from "../lib/index.js";
import { calls, script, server } from "./box.js";

const folder = process.argv[2];
if (folder) {
  const c = await Client.start({ command: server, cwd: folder, mode: "timed", model: script("steered.yaml"), permission: "full-access" });
  const told = c.events();
  const joining = (async () => {
    for await (const n of told) {
      if (!calls(n, "wait1")) continue;
      await c.steer(n.sessionId, "also the docs");
      if (!(await c.answer(n.sessionId, "ask1", [{ id: "port", selected: ["9090"] }]))) throw new Error("not accepted");
      writeFileSync(join(folder, "go"), "");
    }
  })();
  const r = await c.run("port the server");
  await c.close();
  await joining;
  console.log(JSON.stringify(r));
}
