// A client on the package @agentclientprotocol/sdk: node client.mjs all|one FOLDER PROGRAM ARGUMENTS…
import { spawn } from "node:child_process";
import { PassThrough, Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [prompts, cwd, program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((ok) => child.on("close", ok));

// All that comes is kept, beside what the package makes of it.
let said = "";
const copy = new PassThrough();
child.stdout.on("data", (b) => (said += b)).pipe(copy);
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(copy));
const { agent, client } = acp.methods;

let choose = "allow_once";
let commandRuns, questionIsOpen;
const running = new Promise((ok) => (commandRuns = ok));
const open = new Promise((ok) => (questionIsOpen = ok));

const editor = acp
  .client({ name: "test" })
  .onRequest(client.session.requestPermission, async ({ params }) => {
    console.log("ask", params.toolCall.title);
    if (!choose) {
      questionIsOpen();
      return new Promise(() => {}); // nobody is there
    }
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === choose).optionId } };
  })
  .onNotification(client.session.update, async ({ params: { update: u } }) => {
    switch (u.sessionUpdate) {
      case "agent_message_chunk":
        return console.log("text", u.content.text);
      case "agent_thought_chunk":
        return console.log("thought", u.content.text);
      case "tool_call":
        return console.log("tool_call", u.toolCallId, u.kind, u.status);
      case "tool_call_update":
        if (u.toolCallId === "b1") commandRuns();
        return console.log("tool_call_update", u.toolCallId, u.status, u.content?.[0]?.type ?? "", "line", u.locations?.[0]?.line ?? "");
      case "plan":
        return console.log("plan", u.entries.map((e) => `${e.content}: ${e.status}`).join(", "));
    }
  });

await editor.connectWith(stream, async (ctx) => {
  const init = await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  console.log("initialized", init.protocolVersion);
  const { sessionId } = await ctx.request(agent.session.new, { cwd, mcpServers: [] });
  console.log("session", sessionId);
  const send = (...blocks) => ctx.request(agent.session.prompt, { sessionId, prompt: blocks });
  const prompt = (text) => send({ type: "text", text });
  const told = (name, p) => p.then((r) => console.log(name, r.stopReason), (e) => console.log(name, e.code, e.message));

  if (prompts === "one") return told("only", prompt("go"));
  await told("first", prompt("write it"));
  await told("second", prompt("ask me"));
  const third = prompt("wait");
  await running;
  await told("too early", prompt("too early"));
  await ctx.notify(agent.session.cancel, { sessionId });
  await ctx.notify(agent.session.cancel, { sessionId });
  await told("third", third);
  choose = "reject_once";
  await told("fourth", prompt("write elsewhere"));
  await told("fifth", prompt("edit it"));
  await told("blocks", send({ type: "text", text: "see " }, { type: "resource_link", uri: "file:///x" }));
  console.log("mode", JSON.stringify(await ctx.request(agent.session.setMode, { sessionId, modeId: "read-only" })));
  const list = await ctx.request(agent.session.list, {});
  console.log("sessions", list.sessions.length);

  choose = undefined;
  const last = prompt("ask again");
  last.catch(() => {}); // its connection ends
  await open;
});
child.stdin.end();
console.log("exit", await exited);

// Nothing but messages has come, and one answer for each request, whose ids are numbers.
const messages = said.split("\n").slice(0, -1).map((line) => JSON.parse(line));
const sound = messages.every((m) => m.jsonrpc === "2.0" && ("method" in m || "result" in m !== "error" in m));
console.log("stdout", sound && said.endsWith("\n") ? "sound" : "unsound");
const answers = messages.filter((m) => !("method" in m));
console.log("answered once", answers.length === new Set(answers.map((m) => m.id)).size, answers.length);
console.log("last", JSON.stringify(answers.at(-1).result));
