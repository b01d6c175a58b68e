import { SlowConsumer } from "./errors.js";

const behind = 100_000; // notifications that may wait

/** An async iterator over what the server tells. */
export class Notifications {
  /** @param {string | undefined} sessionId @param {(n: Notifications) => void} closed */
  constructor(sessionId, closed) {
    this.sessionId = sessionId;
    this.closed = closed;
    /** @type {any[]} */
    this.queue = [];
    this.head = 0;
    /** @type {{error?: Error} | undefined} */
    this.end = undefined;
    /** @type {(() => void)[]} */
    this.waiting = [];
  }

  /** @param {any} note */
  push(note) {
    if (this.end) return;
    if (this.queue.length - this.head >= behind) {
      this.finish(new SlowConsumer(`${behind} notifications wait to be read`));
      return;
    }
    this.queue.push(note);
    this.waiting.shift()?.();
  }

  /** @param {Error} [error] */
  finish(error) {
    this.end ??= { error };
    for (const wake of this.waiting.splice(0)) wake();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    for (;;) {
      if (this.head < this.queue.length) {
        const value = this.queue[this.head];
        this.queue[this.head++] = undefined;
        if (this.head > 1024 && this.head * 2 > this.queue.length) {
          this.queue.splice(0, this.head);
          this.head = 0;
        }
        return { value, done: false };
      }
      if (this.end) {
        if (this.end.error) throw this.end.error;
        return { value: undefined, done: true };
      }
      await new Promise((resolve) => this.waiting.push(/** @type {any} */ (resolve)));
    }
  }

  /** Ends the iteration, also for somebody who waits in it. */
  async return() {
    this.queue = [];
    this.head = 0;
    this.finish();
    this.closed(this);
    return { value: undefined, done: true };
  }
}
