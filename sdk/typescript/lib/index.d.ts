// For Symbol.asyncDispose, which the libraries of es2022 do not have.
/// <reference lib="esnext.disposable" />

/** One choice of a question. */
export interface Option {
  label: string;
  description?: string;
}

/** One question of a batch, as the agent asked it. Without options it is answered in words. */
export interface Question {
  id: string;
  question: string;
  header?: string;
  /** Longer text: a command, a diff, a plan. */
  detail?: string;
  options?: Option[];
  multi_select?: boolean;
}

/** The answer to one question; no label and no words mean that it is skipped. */
export interface Answer {
  id: string;
  /** Labels; one at most unless the question is multi_select. */
  selected: string[];
  /** Words instead of, or with multi_select beside, the labels. */
  custom?: string;
}

/** What a question handler is given: a batch that wants one answer a question. */
export interface QuestionRequest {
  sessionId: string;
  callId: string;
  /** legacy is a question without a time limit. */
  kind: "question" | "legacy" | "approval" | "plan-review";
  questions: Question[];
  /** The wait ends by itself, and the question then stays answerable. */
  timed: boolean;
  /** What was left when the handler was called; null without a limit. */
  remainingMs: number | null;
}

/**
 * Gives one answer a question, or null to leave the questions to others or to
 * their time; for an approval or a plan review null is a no. It may take as long as
 * it likes: at the end of a timed question's wait the agent goes on, and the answer
 * is then sent as a late one.
 *
 * If it throws, or its answers do not fit, a timed question is left to its time.
 * What has no time to end it is closed without an answer, which is a no to an
 * approval.
 */
export type QuestionHandler = (q: QuestionRequest) => Answer[] | null | undefined | Promise<Answer[] | null | undefined>;

/** A question that has no answer. */
export interface OpenQuestion {
  callId: string;
  state: "open" | "continued";
  /** An answer is queued that the agent has not read yet. */
  queued: boolean;
  questions: Question[];
  /** The command that answers it, ready for a shell. */
  answer: string;
}

/** Tokens, and cost in US dollars where prices are known. */
export interface Usage {
  /** Without cache hits. */
  inputTokens: number;
  cacheReadTokens: number;
  outputTokens: number;
  reasoningTokens?: number;
  costUsd?: number;
}

/** An event as it stands in the session's log. */
export interface SessionEvent {
  seq: number;
  type: string;
  /** Milliseconds since the epoch. */
  time: number;
  data: any;
  [key: string]: unknown;
}

/**
 * What the owner of an idle-to-idle interval may say of it. The interval is
 * wider than the task: whatever joined before the agent was idle belongs to it,
 * and nothing in it is attributed to the task's message.
 */
export interface RunResult {
  sessionId: string;
  /** Of the task. */
  messageId: string;
  /** Text of the last assistant message that has text, "" if none has. */
  finalResponse: string;
  /** How the last turn ended: completed, aborted, blocked, error, max-tokens, max-steps; null if none ended. */
  finishReason: string | null;
  /** Summed over the interval. */
  usage: Usage;
  steps: number;
  /** Measured by this client. */
  durationMs: number;
  /** Approvals that were refused. */
  denied: number;
  /** Without an answer when the agent was idle. */
  questions: OpenQuestion[];
  /** Of the interval, as logged, from the task's receipt on. */
  events: SessionEvent[];
  /** Of the last turn, if it ended with an error. */
  error?: { code: string; message: string; status?: number };
}

/** Something that the server told. */
export interface Notification {
  method: "session.event" | "session.status" | "session.delta" | "questions/request" | "questions/settled" | (string & {});
  sessionId: string;
  params: any;
  /** Of session.event. */
  event?: SessionEvent;
}

export interface Options {
  /** Starts the server; default ["deepseek", "rpc"]. */
  command?: readonly string[];
  /** Where the server works; default the process's own directory. */
  cwd?: string;
  /** What is left out is left to the server's settings, here and below. */
  model?: string;
  mode?: "legacy" | "timed";
  /** Whole seconds a timed question waits, -1 for ever. */
  timeout?: number;
  permission?: "read-only" | "workspace-write" | "full-access";
  /** Without it timed questions are left pending, as in any unattended run. */
  onQuestion?: QuestionHandler;
  /** Answers approvals and plan reviews. Without it they are denied, unless another client may answer. */
  onApproval?: QuestionHandler;
  /** Added to the environment. */
  env?: Record<string, string>;
  /** For one request; default 60000. */
  requestTimeoutMs?: number;
}

export interface RunOptions {
  /** An old session to go on with; else a new one is begun. */
  sessionId?: string;
  /** At its end the run is cancelled, what is queued is kept, and RunTimeout is thrown. */
  timeoutMs?: number;
  /** Cancels the run in the same way and rejects with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * A server of sessions and the connection to it. Methods reject with
 * RequestRefused, RequestTimeout, ServerDied or ClientClosed.
 */
export class Client {
  /** Starts the server. Rejects with ServerNotFound, ServerDied or RequestRefused. */
  static start(options?: Options): Promise<Client>;
  private constructor();

  /**
   * Runs a task to the next whole-agent idle. A run that the model or a budget
   * ended is no error: see finishReason. Rejects with RunInProgress, RunTimeout,
   * HandlerFailed, MalformedEvent too.
   */
  run(task: string, options?: RunOptions): Promise<RunResult>;

  /** Queues a message for a turn of its own; settles once it is on disk. */
  prompt(text: string, options?: { sessionId?: string }): Promise<{ sessionId: string; messageId: string }>;
  /** Queues a message for the next step; settles with its id once it is on disk. */
  steer(sessionId: string, text: string): Promise<string>;
  /** Ends the turn in hand and, unless keepInbox, discards what is queued. */
  cancel(sessionId: string, options?: { keepInbox?: boolean }): Promise<void>;
  /** The events of a session's log from a seq on, page by page. */
  read(sessionId: string, fromSeq?: number): AsyncGenerator<SessionEvent, void>;
  /** All sessions, the latest first, as `deepseek sessions --json` tells them. */
  sessions(): Promise<any[]>;
  /** Ends the work on a session and frees it; what is queued is kept. */
  closeSession(sessionId: string): Promise<void>;
  /** The questions of a session that have no answer. */
  questions(sessionId: string): Promise<OpenQuestion[]>;
  /** Sends a late answer. False: the question is not one that waits for it. */
  answer(sessionId: string, callId: string, answers: readonly Answer[]): Promise<boolean>;
  /** Takes a late answer back that is still queued. */
  withdraw(sessionId: string, callId: string): Promise<boolean>;
  /** What the server tells from now on, of one session or of all. Ends with the client. */
  events(options?: { sessionId?: string }): AsyncIterableIterator<Notification>;
  /** Closes all sessions and ends the server: by shutdown, then the end of its input, then signals. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The base of all errors of this package. */
export class DeepseekError extends Error {}
/** The server program could not be started. */
export class ServerNotFound extends DeepseekError {}
/**
 * The server has ended, or does not speak the protocol. What was asked of it may
 * or may not have taken effect; what it acknowledged is on disk.
 */
export class ServerDied extends DeepseekError {
  exitCode: number | null;
  signal: string | null;
  /** The last of what it wrote on standard error. */
  stderr: string;
}
/** The client was closed. */
export class ClientClosed extends DeepseekError {}
/** The server did not answer a request in time. It may have taken effect. */
export class RequestTimeout extends DeepseekError {}
/** The server refused a request, or it is longer than the server takes (INVALID_REQUEST). Nothing was done. */
export class RequestRefused extends DeepseekError {
  /** A word in capitals: SESSION_BUSY, SESSION_NOT_FOUND, BAD_ANSWER, INVALID_PARAMS, … */
  code: string;
  /** Of INVALID_PARAMS: the parameter. */
  path: string;
}
/** A run of this client owns the session already: runs of one session take turns. */
export class RunInProgress extends DeepseekError {}
/**
 * The run took longer than its caller allowed and was cancelled. If a question
 * handler had failed by then, that is the cause.
 */
export class RunTimeout extends DeepseekError {
  sessionId: string | undefined;
}
/** An event of the interval is not what the log promises, or not the next one. */
export class MalformedEvent extends DeepseekError {}
/**
 * A question handler threw, or gave an answer that does not fit (the cause). A
 * timed question was left to its time or to other clients; one without a time limit
 * was closed without an answer, and an approval was denied. The run went on to its
 * end.
 */
export class HandlerFailed extends DeepseekError {
  result: RunResult;
}
/** An iterator over notifications was read too slowly and has lost its place. */
export class SlowConsumer extends DeepseekError {}
