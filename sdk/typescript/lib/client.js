import { resolve as absolute } from "node:path";

import { Connection } from "./connection.js";
import { ClientClosed, HandlerFailed, RequestTimeout, RunInProgress, RunTimeout } from "./errors.js";
import { Interval, openQuestion } from "./interval.js";
import { Notifications } from "./notifications.js";
import { Wait } from "./wait.js";

/**
 * @typedef {{sessionId: string | undefined, interval: Interval, failure: {error: unknown} | undefined,
 *   abandoned: boolean, resolve: (r: import("./index.js").RunResult) => void, reject: (err: unknown) => void}} Run
 */

/** A server of sessions and the connection to it; see index.d.ts. */
export class Client {
  /** @param {import("./index.js").Options} [options] */
  static async start(options = {}) {
    const c = new Client(options);
    try {
      await c.call("initialize", c.params);
      c.initialized = true;
    } catch (err) {
      await c.close();
      throw err;
    }
    return c;
  }

  /** @param {import("./index.js").Options} options */
  constructor(options) {
    const { command = ["deepseek", "rpc"], cwd = process.cwd(), model, mode, timeout, permission } = options;
    const { onQuestion, onApproval, env, requestTimeoutMs = 60_000 } = options;
    this.requestTimeoutMs = requestTimeoutMs;
    this.initialized = false; // the server has answered
    /** @type {Record<string, import("./index.js").QuestionHandler | undefined>} */
    this.handlers = { question: onQuestion, legacy: onQuestion, approval: onApproval, "plan-review": onApproval };
    const capabilities = { ...(onQuestion && { questions: true }), ...(onApproval && { approvals: true }) };
    this.params = { cwd: absolute(cwd), model, mode, timeout, permission, capabilities }; // undefined is left out
    /** @type {Set<Run>} */
    this.runs = new Set();
    /** @type {Map<string, Wait>} */
    this.waits = new Map();
    /** @type {Set<Notifications>} */
    this.feeds = new Set();
    /** @type {Error | undefined} */
    this.over = undefined;
    /** @type {Promise<void> | undefined} */
    this.closing = undefined;
    this.connection = new Connection(command, env, (m, p) => this.notified(m, p), (why) => this.ended(why));
  }

  /**
   * @param {string} task
   * @param {import("./index.js").RunOptions} [options]
   * @returns {Promise<import("./index.js").RunResult>}
   */
  async run(task, { sessionId, timeoutMs, signal } = {}) {
    signal?.throwIfAborted();
    if (sessionId !== undefined && [...this.runs].some((r) => r.sessionId === sessionId)) {
      throw new RunInProgress(`a run of session ${sessionId} is at work already`);
    }
    /** @type {Run} */
    const run = { sessionId, interval: new Interval(), failure: undefined, abandoned: false, resolve: () => {}, reject: () => {} };
    const result = new Promise((resolve, reject) => Object.assign(run, { resolve, reject }));
    this.runs.add(run);
    const params = { ...(sessionId !== undefined && { sessionId }), ...message(task) };
    this.connection
      .request("session/prompt", params, (r) => {
        run.sessionId = r.sessionId;
        if (run.abandoned) this.cancelRun(run);
        this.feed(run, () => run.interval.receipt(r.sessionId, r.messageId));
      })
      .catch(run.reject);

    let timer;
    const onAbort = () => this.abandon(run, signal?.reason);
    if (timeoutMs !== undefined) {
      const late = () => this.abandon(run, timedOut(run, timeoutMs));
      timer = setTimeout(late, timeoutMs);
    }
    signal?.addEventListener("abort", onAbort);
    try {
      return /** @type {import("./index.js").RunResult} */ (await result);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.runs.delete(run);
    }
  }

  /** @param {string} text @param {{sessionId?: string}} [options] */
  async prompt(text, { sessionId } = {}) {
    return this.call("session/prompt", { ...(sessionId !== undefined && { sessionId }), ...message(text) });
  }

  /** @param {string} sessionId @param {string} text */
  async steer(sessionId, text) {
    return (await this.call("session/steer", { sessionId, ...message(text) })).messageId;
  }

  /** @param {string} sessionId @param {{keepInbox?: boolean}} [options] */
  async cancel(sessionId, { keepInbox = false } = {}) {
    await this.call("session/cancel", { sessionId, keepInbox });
  }

  /** @param {string} sessionId @param {number} [fromSeq] */
  async *read(sessionId, fromSeq = 0) {
    for (let more = true; more; ) {
      const page = await this.call("session/read", { sessionId, fromSeq });
      yield* page.events;
      ({ nextSeq: fromSeq, more } = page);
    }
  }

  async sessions() {
    return (await this.call("session/list", {})).sessions;
  }

  /** @param {string} sessionId */
  async closeSession(sessionId) {
    await this.call("session/close", { sessionId });
  }

  /** @param {string} sessionId */
  async questions(sessionId) {
    return (await this.call("questions/list", { sessionId })).active.map(openQuestion);
  }

  /** @param {string} sessionId @param {string} callId @param {readonly import("./index.js").Answer[]} answers */
  async answer(sessionId, callId, answers) {
    return (await this.call("questions/answer", { sessionId, callId, answers })).accepted;
  }

  /** @param {string} sessionId @param {string} callId */
  async withdraw(sessionId, callId) {
    return (await this.call("questions/withdraw", { sessionId, callId })).withdrawn;
  }

  /** @param {{sessionId?: string}} [options] */
  events({ sessionId } = {}) {
    const n = new Notifications(sessionId, (closed) => this.feeds.delete(closed));
    if (this.over) n.finish(this.over instanceof ClientClosed ? undefined : this.over);
    else this.feeds.add(n);
    return n;
  }

  close() {
    this.closing ??= this.end();
    return this.closing;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  // By shutdown, then the end of the input, then signals.
  async end() {
    this.over ??= new ClientClosed("the client was closed");
    const c = this.connection;
    c.closed = this.over;
    c.request("shutdown", {}).catch(() => {}); // whether it ends is what counts
    c.closeInput();
    // One that has not even answered the first request has no sessions to close.
    await c.stop(this.initialized ? 15_000 : 1000);
  }

  /** @param {string} method @param {object} params */
  async call(method, params) {
    if (this.over) throw this.over;
    let timer;
    const late = new Promise((_, reject) => {
      const err = new RequestTimeout(`the server did not answer ${method} within ${this.requestTimeoutMs} ms`);
      timer = setTimeout(() => reject(err), this.requestTimeoutMs);
    });
    try {
      return await Promise.race([this.connection.request(method, params), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {Run} run @param {unknown} why */
  abandon(run, why) {
    run.reject(why);
    run.abandoned = run.sessionId === undefined; // then the answer to its prompt cancels it
    if (!run.abandoned) this.cancelRun(run);
  }

  /** @param {Run} run */
  cancelRun(run) {
    // The run is given up either way.
    this.connection.request("session/cancel", { sessionId: run.sessionId, keepInbox: true }).catch(() => {});
  }

  /** @param {Run} run @param {() => boolean} take whether the interval has ended with it */
  feed(run, take) {
    try {
      if (take()) this.finish(run);
    } catch (err) {
      this.runs.delete(run);
      this.abandon(run, err);
    }
  }

  /** The interval has ended: what has no answer is asked for, and then the run is over. @param {Run} run */
  async finish(run) {
    try {
      const list = await this.connection.request("questions/list", { sessionId: run.sessionId });
      const result = run.interval.result(list.active);
      if (run.failure) throw new HandlerFailed(`a question handler failed: ${run.failure.error}`, result, run.failure.error);
      run.resolve(result);
    } catch (err) {
      run.reject(err);
    }
  }

  /** @param {string} method @param {any} params */
  notified(method, params) {
    const { sessionId = "" } = params;
    if (method === "session.event" || method === "session.status") {
      const kind = method.slice("session.".length);
      for (const r of [...this.runs]) {
        if (r.sessionId === sessionId) this.feed(r, () => r.interval.feed(kind, params[kind]));
      }
    } else if (method === "questions/request") {
      this.claim(params);
    } else if (method === "questions/wait" || method === "questions/waitEnded") {
      this.waited(method, params);
      return;
    }
    const note = { method, sessionId, params, event: method === "session.event" ? params.event : undefined };
    for (const f of this.feeds) {
      if (f.sessionId === undefined || f.sessionId === sessionId) f.push(note);
    }
  }

  /** @param {any} note */
  claim(note) {
    if (!this.handlers[note.kind]) return;
    const { sessionId, callId } = note;
    const key = JSON.stringify([sessionId, callId]);
    const failed = (/** @type {unknown} */ error) => {
      for (const r of this.runs) if (r.sessionId === sessionId) r.failure ??= { error };
    };
    const letGo = () => this.waits.delete(key);
    this.waits.set(key, new Wait(note, (m, p) => this.connection.request(m, p), failed, letGo));
    this.connection.request("questions/attachWait", { sessionId, callId }).then((r) => r.attached || letGo(), letGo);
  }

  /** @param {string} method @param {any} params */
  waited(method, params) {
    const key = JSON.stringify([params.sessionId, params.callId]);
    const wait = this.waits.get(key);
    if (!wait) return;
    if (method === "questions/wait") {
      const handler = this.handlers[wait.note.kind];
      if (handler) wait.begin(params.remainingMs, handler);
      return;
    }
    this.waits.delete(key);
    wait.over(params.outcome);
  }

  /** @param {Error} why */
  ended(why) {
    this.over ??= why;
    for (const r of this.runs) r.reject(this.over);
    for (const w of this.waits.values()) w.over("");
    for (const f of this.feeds) f.finish(this.over instanceof ClientClosed ? undefined : this.over);
    this.runs.clear();
    this.waits.clear();
    this.feeds.clear();
  }
}

/** The error names the handler that had failed by then. @param {Run} run @param {number} ms */
function timedOut(run, ms) {
  let why = `the run took longer than ${ms} ms and was cancelled`;
  if (run.failure) why += `; a question handler had failed: ${run.failure.error}`;
  return new RunTimeout(why, run.sessionId, run.failure && { cause: run.failure.error });
}

/** @param {string} text */
function message(text) {
  return { contentBlocks: [{ type: "text", text }] };
}
