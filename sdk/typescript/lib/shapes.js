// Shapes of what the server says: a name of a type, or an object of members (a ?
// behind the name: it may be left out), or a list of one element's shape, or a
// number that must be this one.

const event = { seq: "whole number", type: "string", time: "whole number", data: "object" };
const questions = [
  {
    id: "string",
    question: "string",
    "header?": "string",
    "detail?": "string",
    "multi_select?": "boolean",
    "options?": [{ label: "string", "description?": "string" }],
  },
];

export const line = {
  "method?": "string",
  "params?": "object",
  "error?": { code: "whole number", message: "string", "data?": { "code?": "string", "path?": "string" } },
};

/** Of results. @type {Record<string, any>} */
export const answers = {
  initialize: { protocolVersion: 1 },
  "session/prompt": { sessionId: "string", messageId: "string" },
  "session/steer": { messageId: "string" },
  "session/cancel": {},
  "session/read": { events: [event], nextSeq: "whole number", more: "boolean" },
  "session/list": { sessions: ["object"] },
  "session/close": {},
  "questions/list": { active: [{ callId: "string", state: "string", queued: "boolean", questions, "answer?": "string" }] },
  "questions/attachWait": { attached: "boolean" },
  "questions/detach": {},
  "questions/respond": { accepted: "boolean" },
  "questions/answer": { accepted: "boolean" },
  "questions/withdraw": { withdrawn: "boolean" },
  shutdown: {},
};

/** Of the parameters of notifications; others are of `note`. @type {Map<string, any>} */
export const notes = new Map(
  Object.entries({
    "session.event": { sessionId: "string", event },
    "session.status": { sessionId: "string", status: "string" },
    "questions/request": { sessionId: "string", callId: "string", kind: "string", questions, timed: "boolean" },
    "questions/wait": { sessionId: "string", callId: "string", remainingMs: "whole number" },
    "questions/waitEnded": { sessionId: "string", callId: "string", outcome: "string" },
  }),
);
export const note = { "sessionId?": "string" };

const usage = {
  inputTokens: "whole number",
  cacheReadTokens: "whole number",
  outputTokens: "whole number",
  "reasoningTokens?": "whole number",
  "costUsd?": "number",
};

/** Of the data of events, as far as they are looked into. @type {Map<string, any>} */
export const events = new Map(
  Object.entries({
    "agent/inbox/spliced": { "inserted?": [{ id: "string" }] },
    "assistant/message": { message: { content: [{ type: "string", "text?": "string" }] }, "usage?": usage },
    "compaction/summary": { "usage?": usage },
    "compaction/end": { "usage?": usage },
    "approval/decided": { decision: "string" },
    "turn/end": { reason: { kind: "string", "error?": { code: "string", message: "string", "status?": "whole number" } } },
  }),
);

/**
 * Throws what of a value is not of its shape.
 * @param {string} what @param {any} v @param {any} shape
 */
export function check(what, v, shape) {
  if (typeof shape === "string") {
    if (shape === "number" ? typeof v !== shape : typeOf(v) !== shape) throw new Error(`${what} is no ${shape}`);
  } else if (typeof shape === "number") {
    if (v !== shape) throw new Error(`${what} is ${v}, and this package speaks ${shape}`);
  } else if (Array.isArray(shape)) {
    if (!Array.isArray(v)) throw new Error(`${what} is no list`);
    v.forEach((e, i) => check(`${i} of ${what}`, e, shape[0]));
  } else {
    check(what, v, "object");
    for (const [name, of] of Object.entries(shape)) {
      const key = name.replace(/\?$/, "");
      if (Object.hasOwn(v, key)) check(`${key} of ${what}`, v[key], of);
      else if (key === name) throw new Error(`${key} of ${what} is missing`);
    }
  }
}

/** @param {any} v */
function typeOf(v) {
  if (v === null) return "null";
  if (Array.isArray(v)) return "list";
  return Number.isInteger(v) ? "whole number" : typeof v;
}
