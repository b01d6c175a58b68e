// What a usual program writes; it is compiled by the strict compiler, never run.
import { Client, HandlerFailed, RunTimeout } from "deepseek-agent";
import type { Answer, QuestionRequest, RunResult } from "deepseek-agent";

const answer = async (q: QuestionRequest): Promise<Answer[] | null> =>
  q.timed ? q.questions.map((x) => ({ id: x.id, selected: (x.options ?? []).slice(0, 1).map((o) => o.label) })) : null;

const c = await Client.start({ cwd: "/tmp", mode: "timed", timeout: 60, onQuestion: answer, onApproval: () => null });
try {
  const r: RunResult = await c.run("fix the failing test", { timeoutMs: 1000, signal: new AbortController().signal });
  const reason: string | null = r.finishReason;
  for (const q of r.questions) console.log(reason, q.callId, q.answer, await c.answer(r.sessionId, q.callId, []));
  for await (const n of c.events({ sessionId: r.sessionId })) console.log(n.method, n.event?.seq);
} catch (err) {
  if (err instanceof HandlerFailed) console.log(err.result.denied, err.cause);
  if (err instanceof RunTimeout) console.log(err.sessionId, err.cause);
} finally {
  await c.close();
}
