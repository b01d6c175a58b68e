// A home and a folder to work in, and the server under test: $DEEPSEEK, else deepseek.
import { mkdtempSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const server = [process.env.DEEPSEEK ?? "deepseek", "rpc"];
export const script = (name) => `script:${fileURLToPath(new URL(`../../testdata/${name}`, import.meta.url))}`;

// They go when all servers have ended. What is to be done after a test is done in
// the order in which it was asked for, so that would be too early.
const dirs = [];
process.once("exit", () => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});

export function box() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "sdk")));
  dirs.push(dir);
  const home = join(dir, "home");
  const ws = join(dir, "ws");
  mkdirSync(home);
  mkdirSync(ws);
  const env = { HOME: home, TMPDIR: dir, DEEPSEEK_HOME: "", XDG_RUNTIME_DIR: "", DEEPSEEK_API_KEY: "" };
  return {
    ws,
    options: (name, more = {}) => ({ command: server, cwd: ws, env, mode: "timed", model: script(name), permission: "full-access", ...more }),
    release: () => writeFileSync(join(ws, "go"), ""), // ends the command that waits for it
  };
}

// Whether a notification is of the call of a tool.
export const calls = (n, id) => n.event?.type === "tool/call" && n.event.data.callId === id;
