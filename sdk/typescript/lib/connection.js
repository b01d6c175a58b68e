// The server's process and the JSON-RPC connection to it.

import { spawn } from "node:child_process";

import { RequestRefused, ServerDied, ServerNotFound } from "./errors.js";
import { answers, check, line, note, notes } from "./shapes.js";

const stderrKept = 8 << 10; // characters
const longestRequest = 64 << 20; // bytes that the server takes in a line
const parseError = -32700; // of a line that is no JSON
const invalidRequest = -32600; // of one that is no request

const names = new Map([
  [parseError, "PARSE_ERROR"],
  [invalidRequest, "INVALID_REQUEST"],
  [-32601, "METHOD_NOT_FOUND"],
  [-32602, "INVALID_PARAMS"],
  [-32603, "INTERNAL"],
]);

/**
 * Starts the server and talks to it. `notified` and `ended` are called in the
 * order of the server's lines; a request's `then` is called before anything
 * that came behind its answer.
 */
export class Connection {
  /**
   * @param {readonly string[]} command
   * @param {Record<string, string> | undefined} env added to the environment
   * @param {(method: string, params: any) => void} notified
   * @param {(why: Error) => void} ended called once
   */
  constructor(command, env, notified, ended) {
    this.notified = notified;
    this.ended = ended;
    this.lastId = 0;
    /** @type {Map<number, {method: string, resolve: (v: any) => void, reject: (e: Error) => void, then?: (v: any) => void}>} */
    this.pending = new Map();
    /** @type {Error | undefined} */
    this.over = undefined;
    /** @type {Error | undefined} */
    this.closed = undefined; // what requests fail with once the client was closed
    this.reason = ""; // why the connection is over, where the server has said so or it shows
    this.stderr = "";
    /** @type {Buffer[]} */
    this.parts = []; // of a line that is not whole
    this.process = spawn(command[0], command.slice(1), {
      stdio: ["pipe", "pipe", "pipe"],
      env: env ? { ...process.env, ...env } : process.env,
    });
    /** @type {Promise<void>} */
    this.exited = new Promise((resolve) => {
      this.process.once("error", (err) => {
        if (this.process.pid === undefined) {
          this.finish(new ServerNotFound(`cannot start ${JSON.stringify(command[0])}: ${err.message}`, { cause: err }));
          resolve();
        }
      });
      // "close" comes when the process has ended and its output is read; a
      // grandchild that holds a pipe must not keep us waiting.
      this.process.once("exit", (code, signal) => {
        const end = () => {
          clearTimeout(patience);
          this.finish(this.died(code, signal));
          this.process.stdout.destroy();
          this.process.stderr.destroy();
          resolve();
        };
        const patience = setTimeout(end, 2000);
        this.process.once("close", end);
      });
    });
    this.process.stdin.on("error", () => {}); // the server has ended: exit tells
    this.process.stdout.on("data", (chunk) => this.read(chunk));
    this.process.stdout.once("end", () => this.outputOver());
    this.process.stderr.setEncoding("utf8").on("data", (text) => {
      this.stderr = (this.stderr + text).slice(-stderrKept);
    });
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {(result: any) => void} [then] called with the result before what came behind the answer
   * @returns {Promise<any>}
   */
  request(method, params, then) {
    return new Promise((resolve, reject) => {
      if (this.over) {
        reject(this.over);
        return;
      }
      const request = JSON.stringify({ jsonrpc: "2.0", id: this.lastId + 1, method, params });
      const size = Buffer.byteLength(request);
      if (size > longestRequest) {
        const why = `${method} would be a line of ${size} bytes; the server takes at most ${longestRequest}`;
        reject(new RequestRefused("INVALID_REQUEST", why));
        return;
      }
      this.pending.set(++this.lastId, { method, resolve, reject, then });
      this.process.stdin.write(request + "\n");
    });
  }

  /** @param {Buffer} chunk */
  read(chunk) {
    let begin = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      this.parts.push(chunk.subarray(begin, end));
      const text = Buffer.concat(this.parts).toString("utf8");
      this.parts = [];
      begin = end + 1;
      try {
        this.handle(JSON.parse(text));
      } catch (/** @type {any} */ err) {
        this.reason = `the server's output is not understood: ${err.message}`;
        this.process.kill("SIGKILL");
        return;
      }
    }
    if (begin < chunk.length) this.parts.push(chunk.subarray(begin));
  }

  /** @param {any} m */
  handle(m) {
    check("the line", m, line);
    const { method, params = {}, error, result } = m;
    if (method !== undefined) {
      check(method, params, notes.get(method) ?? note);
      this.notified(method, params);
      return;
    }
    let id = m.id ?? undefined;
    if (id !== undefined) check("id of the line", id, "whole number");
    else if (error) id = this.unnamed(error);
    else throw new Error("the line is no answer and no notification");
    const p = this.pending.get(id);
    if (!p) return;
    if (!error) {
      // What is not understood stays pending, and fails with the connection.
      check(`the answer to ${p.method}`, result, answers[p.method]);
      p.then?.(result);
    }
    this.pending.delete(id);
    if (error) p.reject(refusal(error));
    else p.resolve(result);
  }

  /**
   * Which request an error that names none is about. Requests are answered in the
   * order sent, so a line that was not understood is the oldest one that has no
   * answer; anything else is about the connection and its last line.
   * @param {{code: number, message: string}} error
   */
  unnamed(error) {
    const [oldest] = this.pending.keys();
    if (oldest !== undefined && (error.code === parseError || error.code === invalidRequest)) return oldest;
    this.reason = refusal(error).message;
    this.outputOver();
    return undefined;
  }

  /** @param {number | null} code @param {string | null} signal */
  died(code, signal) {
    let why = this.reason || (signal ? `the server was ended by ${signal}` : `the server ended with status ${code}`);
    const stderr = this.stderr.trim();
    if (stderr) why += `\n${stderr}`;
    return new ServerDied(why, code, signal, stderr);
  }

  /** @param {Error} why */
  finish(why) {
    if (this.over) return;
    why = this.closed ?? why;
    this.over = why;
    const pending = [...this.pending.values()];
    this.pending.clear();
    for (const p of pending) p.reject(why);
    this.ended(why);
  }

  /** Lets the server see the end of its input, behind what was sent. */
  closeInput() {
    this.process.stdin.end();
  }

  /**
   * Whether the server has ended, after at most so many milliseconds.
   * @param {number} ms
   * @returns {Promise<boolean>}
   */
  async wait(ms) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(() => resolve(false), ms)));
    const ended = await Promise.race([this.exited.then(() => true), late]);
    clearTimeout(timer);
    return /** @type {boolean} */ (ended);
  }

  /**
   * Waits for the end of the server, whom signals end after so many milliseconds.
   * @param {number} patience
   * @param {string} [why] the reason for the signals, unless the server has named one
   */
  async stop(patience, why = "") {
    if (await this.wait(patience)) return;
    if (this.process.kill("SIGTERM")) this.reason ||= why;
    if (await this.wait(6_000)) return;
    this.process.kill("SIGKILL");
    await this.wait(5_000);
  }

  // A server whose output is over is of no use.
  outputOver() {
    this.stop(1000, "the server closed its output");
  }
}

/** @param {any} error */
function refusal(error) {
  const data = error.data ?? {};
  return new RequestRefused(data.code ?? names.get(error.code) ?? "", error.message, data.path);
}
