// How a question handler's answers reach the agent.

import { RequestRefused } from "./errors.js";

const longestTimer = 2 ** 31 - 1; // of setTimeout, in milliseconds

/**
 * One foreground wait that this client has a claim on.
 *
 * With the claim the client owns the countdown: at zero it gives the question
 * up, which then goes pending, and what the handler still answers is sent as a
 * late answer. An answer that loses to the end of the wait's time is sent as a
 * late answer too, once.
 */
export class Wait {
  /**
   * @param {any} note the notification questions/request
   * @param {(method: string, params: object) => Promise<any>} send
   * @param {(err: unknown) => void} failed
   * @param {() => void} letGo
   */
  constructor(note, send, failed, letGo) {
    this.note = note;
    this.ids = { sessionId: note.sessionId, callId: note.callId };
    this.send = send;
    this.failed = failed;
    this.letGo = letGo;
    /** @type {"claimed" | "answered" | "expired" | "ended"} */
    this.state = "claimed";
    this.outcome = "";
    /** @type {object | undefined} what was answered when another settlement had won */
    this.lost = undefined;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
  }

  /**
   * The claim holds. Called once. It settles when the handler's answers have been dealt with.
   * @param {number} remainingMs
   * @param {import("./index.js").QuestionHandler} handler
   */
  async begin(remainingMs, handler) {
    if (remainingMs >= 0) this.countDown(performance.now() + remainingMs);
    let answers;
    try {
      answers = await handler({
        sessionId: this.note.sessionId,
        callId: this.note.callId,
        kind: this.note.kind,
        questions: this.note.questions,
        timed: this.note.timed,
        remainingMs: remainingMs >= 0 ? remainingMs : null,
      });
      if (answers !== null && answers !== undefined && !Array.isArray(answers)) {
        throw new TypeError("a question handler returns an array of answers, or null");
      }
      JSON.stringify(answers); // what is no JSON could not be sent later
    } catch (err) {
      this.failed(err); // before the agent may go on and the run end
      this.giveUp(true);
      return;
    }
    if (answers === null || answers === undefined) {
      this.giveUp(false);
      return;
    }
    const was = this.take("answered");
    const params = { ...this.ids, answers };
    if (was === "claimed") {
      await this.respond(params);
    } else if (was === "expired" || this.outcome === "pending") {
      await this.late(params);
    }
  }

  /** @param {number} deadline of performance.now() */
  countDown(deadline) {
    const left = Math.max(0, deadline - performance.now());
    this.timer = setTimeout(() => {
      if (left > longestTimer) {
        this.countDown(deadline);
      } else if (this.take("expired") === "claimed") {
        this.send("questions/respond", { ...this.ids, error: { code: "ASK_TIMED_OUT" } }).catch(ignore);
      }
    }, Math.min(left, longestTimer));
  }

  /**
   * The wait has ended, or the connection has.
   * @param {string} outcome
   */
  over(outcome) {
    this.outcome ||= outcome;
    this.take("ended");
    if (this.lost && outcome === "pending") this.late(this.lost);
    this.lost = undefined;
  }

  /**
   * Takes the outcome if nobody has. Returns what the state was.
   * @param {"answered" | "expired" | "ended"} state
   */
  take(state) {
    const was = this.state;
    if (was === "claimed") this.state = state;
    clearTimeout(this.timer);
    return was;
  }

  /** @param {object} params */
  async respond(params) {
    let r;
    try {
      r = await this.send("questions/respond", params);
    } catch (err) {
      if (err instanceof RequestRefused) {
        this.failed(err); // as above
        this.leave(true);
      }
      return;
    }
    if (r.accepted) return;
    if (this.outcome === "pending") await this.late(params);
    else if (!this.outcome) this.lost = params; // until it is known how the wait ended
  }

  /** @param {object} params */
  async late(params) {
    try {
      await this.send("questions/answer", params);
    } catch (err) {
      // Somebody else's reply may be on its way: then this one has lost.
      if (err instanceof RequestRefused && err.code !== "REPLY_QUEUED") this.failed(err);
    }
  }

  /** @param {boolean} failed */
  giveUp(failed) {
    if (this.take("ended") === "claimed") this.leave(failed);
  }

  /**
   * Ends what is not answered here. A wait with a time is left to that and to
   * other clients, and so is a question that the handler passes on. Without a time
   * a handler that has failed would hold the run for ever, so its wait is closed;
   * and no answer to an approval is a no.
   * @param {boolean} failed
   */
  leave(failed) {
    const permits = this.note.kind === "approval" || this.note.kind === "plan-review";
    if (this.note.timed || !(failed || permits)) {
      this.send("questions/detach", this.ids).catch(ignore); // the connection's end lets go too
      this.letGo();
    } else {
      this.send("questions/respond", { ...this.ids, error: { code: "ASK_CANCELLED" } }).catch(ignore);
    }
  }
}

function ignore() {}
