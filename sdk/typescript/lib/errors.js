/** The base of all errors of this package. */
export class DeepseekError extends Error {
  /** @param {string} message @param {{cause?: unknown}} [options] */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server program could not be started. */
export class ServerNotFound extends DeepseekError {}

/** The server has ended, or does not speak the protocol. */
export class ServerDied extends DeepseekError {
  /** @param {string} message @param {number | null} exitCode @param {string | null} signal @param {string} stderr */
  constructor(message, exitCode, signal, stderr) {
    super(message);
    this.exitCode = exitCode;
    this.signal = signal;
    this.stderr = stderr;
  }
}

/** The client was closed. */
export class ClientClosed extends DeepseekError {}

/** The server did not answer a request in time. It may have taken effect. */
export class RequestTimeout extends DeepseekError {}

/** The server refused a request, or it is longer than the server takes. Nothing was done. */
export class RequestRefused extends DeepseekError {
  /** @param {string} code @param {string} message @param {string} [path] */
  constructor(code, message, path = "") {
    super(code ? `${code}: ${message}` : message);
    this.code = code;
    this.path = path;
  }
}

/** A run of this client owns the session already. */
export class RunInProgress extends DeepseekError {}

/** The run took longer than its caller allowed and was cancelled. */
export class RunTimeout extends DeepseekError {
  /** @param {string} message @param {string | undefined} sessionId @param {{cause?: unknown}} [options] */
  constructor(message, sessionId, options) {
    super(message, options);
    this.sessionId = sessionId;
  }
}

/** An event of the interval is not what the log promises, or not the next one. */
export class MalformedEvent extends DeepseekError {}

/** A question handler threw, or gave an answer that does not fit. */
export class HandlerFailed extends DeepseekError {
  /** @param {string} message @param {import("./index.js").RunResult} result @param {unknown} cause */
  constructor(message, result, cause) {
    super(message, { cause });
    this.result = result;
  }
}

/** An iterator over notifications was read too slowly and has lost its place. */
export class SlowConsumer extends DeepseekError {}
