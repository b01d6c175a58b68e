// A client on the package @agentclientprotocol/sdk: node client.mjs FOLDER PROGRAM ARGUMENTS…
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [cwd, program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const { agent, client } = acp.methods;

const editor = acp
  .client({ name: "test" })
  .onRequest(client.session.requestPermission, async ({ params }) => {
    console.log("ask", params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
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
        return console.log("tool_call_update", u.toolCallId, u.status, u.content?.[0]?.type ?? "");
    }
  });

await editor.connectWith(stream, async (ctx) => {
  const init = await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  console.log("initialized", init.protocolVersion);
  const { sessionId } = await ctx.request(agent.session.new, { cwd, mcpServers: [] });
  const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const told = (name, p) => p.then((r) => console.log(name, r.stopReason), (e) => console.log(name, e.code, e.message));

  await told("first", prompt("write it"));
  await told("second", prompt("ask me"));
  const third = prompt("wait");
  await told("too early", prompt("too early"));
  await ctx.notify(agent.session.cancel, { sessionId });
  await told("third", third);
  console.log("mode", JSON.stringify(await ctx.request(agent.session.setMode, { sessionId, modeId: "read-only" })));
  const list = await ctx.request(agent.session.list, {});
  console.log("sessions", list.sessions.length);
});
child.stdin.end();
child.on("exit", (code) => console.log("exit", code));
