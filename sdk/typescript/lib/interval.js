// The fold of one owned idle-to-idle interval over its events.

import { MalformedEvent } from "./errors.js";
import { check, events } from "./shapes.js";

/** Collects from the receipt of a message to the next idle. */
export class Interval {
  constructor() {
    /** @type {string | undefined} */
    this.sessionId = undefined; // until the prompt is answered
    /** @type {string | undefined} */
    this.messageId = undefined;
    this.done = false;
    this.begun = performance.now();
    /** @type {[string, any][]} */
    this.early = [];
    /** @type {any[]} */
    this.events = [];
  }

  /**
   * The prompt was answered. True when the interval has ended with what came before the answer.
   * @param {string} sessionId @param {string} messageId
   */
  receipt(sessionId, messageId) {
    this.sessionId = sessionId;
    this.messageId = messageId;
    const early = this.early;
    this.early = [];
    return early.map(([kind, payload]) => this.feed(kind, payload)).some(Boolean);
  }

  /**
   * An event or a status of the session, in order. True when the interval has ended with it.
   * @param {string} kind @param {any} payload
   */
  feed(kind, payload) {
    if (this.done) return false;
    if (this.messageId === undefined) {
      this.early.push([kind, payload]);
      return false;
    }
    if (kind === "status") {
      this.done = this.events.length > 0 && payload === "idle";
      return this.done;
    }
    if (this.events.length > 0 || this.isReceipt(payload)) this.events.push(payload);
    return false;
  }

  /** @param {any} e */
  isReceipt(e) {
    return e.type === "agent/inbox/spliced" && (data(e).inserted ?? []).some((/** @type {any} */ m) => m.id === this.messageId);
  }

  /**
   * The result, given the questions without an answer. Throws MalformedEvent.
   * @param {any[]} active
   * @returns {import("./index.js").RunResult}
   */
  result(active) {
    let finalResponse = "";
    let finishReason = null;
    let error;
    let steps = 0;
    let denied = 0;
    /** @type {import("./index.js").Usage} */
    const usage = { inputTokens: 0, cacheReadTokens: 0, outputTokens: 0 };
    this.events.forEach((e, i) => {
      const want = this.events[0].seq + i;
      if (e.seq !== want) throw new MalformedEvent(`event ${e.seq} comes where event ${want} is due`);
      const d = data(e);
      switch (e.type) {
        case "assistant/message": {
          const texts = d.message.content.filter((/** @type {any} */ b) => b.type === "text");
          finalResponse = texts.map((/** @type {any} */ b) => b.text ?? "").join("") || finalResponse;
          if (d.usage) add(usage, d.usage);
          break;
        }
        case "compaction/summary":
        case "compaction/end": // a summary is paid for like an answer
          if (d.usage) add(usage, d.usage);
          break;
        case "step/start":
          steps++;
          break;
        case "approval/decided":
          if (d.decision === "denied") denied++;
          break;
        case "turn/end":
          finishReason = d.reason.kind;
          if (finishReason === "") throw new MalformedEvent(`event ${e.seq} (${e.type}) has no reason`);
          error = d.reason.error;
          break;
      }
    });
    return {
      sessionId: /** @type {string} */ (this.sessionId),
      messageId: /** @type {string} */ (this.messageId),
      finalResponse,
      finishReason,
      usage,
      steps,
      durationMs: Math.round(performance.now() - this.begun),
      denied,
      questions: active.map(openQuestion),
      events: this.events,
      ...(error ? { error } : {}),
    };
  }
}

/** @param {any} e */
function data(e) {
  try {
    check(`event ${e.seq} (${e.type})`, e.data, events.get(e.type) ?? {});
  } catch (/** @type {any} */ err) {
    throw new MalformedEvent(err.message);
  }
  return e.data;
}

/**
 * @param {any} q
 * @returns {import("./index.js").OpenQuestion}
 */
export function openQuestion(q) {
  return { callId: q.callId, state: q.state, queued: q.queued, questions: q.questions, answer: q.answer ?? "" };
}

/** @param {import("./index.js").Usage} u @param {any} v */
function add(u, v) {
  u.inputTokens += v.inputTokens;
  u.cacheReadTokens += v.cacheReadTokens;
  u.outputTokens += v.outputTokens;
  if (v.reasoningTokens) u.reasoningTokens = (u.reasoningTokens ?? 0) + v.reasoningTokens;
  if (v.costUsd !== undefined) u.costUsd = v.costUsd + (u.costUsd ?? 0);
}
