"""The client for ordinary code."""

from __future__ import annotations

import concurrent.futures
import threading
from concurrent.futures import Future
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from ._connection import settle
from ._core import Core, Feed, parameters
from ._questions import Ask, on_wire
from .errors import ClientClosed, RequestTimeout
from .types import AnyAnswer, Notification, OpenQuestion, QuestionRequest, RunResult

#: Gives one answer a question, or None to leave the questions to others or to their time;
#: for an approval or a plan review None is a no.
Handler = Callable[[QuestionRequest], Optional[Sequence[AnyAnswer]]]


class Client:
    """A server of sessions and the connection to it. Safe to use from several threads.

    ``command`` starts the server. ``cwd`` is where it works. ``model``, ``mode``
    (legacy or timed), ``timeout`` (whole seconds a timed question waits, -1 for
    ever) and ``permission`` (read-only, workspace-write, full-access) are for all
    its sessions; what is None is left to the server's own settings. ``env`` is
    added to the environment. ``request_timeout`` is in seconds, for one request.

    ``on_question`` answers questions, ``on_approval`` approvals and plan reviews
    (their questions have the options to choose from). Each call is in a thread of
    its own and may take as long as it likes: at the end of a timed question's wait
    the agent goes on, and the answer is then sent as a late one. If it raises, or
    its answers do not fit, a timed question is left to its time; what has no time to
    end it is closed without an answer, which is a no to an approval. Without
    ``on_question``, timed questions are left pending, as in any unattended run.

    Entering the client, or calling ``start``, starts the server and raises
    ServerNotFound, ServerDied or RequestRefused. Leaving it closes all sessions,
    which can be gone on with by id.
    """

    def __init__(
        self,
        command: Sequence[str] = ("deepseek", "rpc"),
        cwd: Optional[str] = None,
        model: Optional[str] = None,
        mode: Optional[str] = None,
        timeout: Optional[int] = None,
        permission: Optional[str] = None,
        on_question: Optional[Handler] = None,
        on_approval: Optional[Handler] = None,
        env: Optional[Mapping[str, str]] = None,
        request_timeout: float = 60.0,
    ) -> None:
        self._command, self._env = tuple(command), env
        self._params = parameters(cwd, model, mode, timeout, permission, on_question is not None, on_approval is not None)
        self._on_question = on_question and _threaded(on_question)
        self._on_approval = on_approval and _threaded(on_approval)
        self._request_timeout = request_timeout
        self._mu = threading.Lock()
        self._core_: Optional[Core] = None
        self._closed = False

    def start(self) -> "Client":
        """Starts the server. Once."""
        with self._mu:
            if self._closed or self._core_ is not None:
                raise ClientClosed("a client is started once")
            self._core_ = core = Core(self._command, self._env, self._params, self._on_question, self._on_approval)
        try:
            self._wait(core.initialized, "initialize")
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Closes all sessions and ends the server. May be called again."""
        with self._mu:
            core, self._closed = self._core_, True
            self._core_ = None
        if core is not None:
            core.close()

    def __enter__(self) -> "Client":
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Owned runs.

    def run(self, task: str, session_id: Optional[str] = None, timeout: Optional[float] = None) -> RunResult:
        """Runs a task to the next whole-agent idle, in a new session or in an old one.

        ``timeout`` is in seconds; at its end the run is cancelled, what is queued is
        kept, and RunTimeout is raised; a handler that had failed by then is its
        cause. Other errors: RunInProgress, RequestRefused
        (SESSION_BUSY: another process owns the session), HandlerFailed,
        MalformedEvent, ServerDied. A run that the model or a budget ended is no
        error: see ``finish_reason``.
        """
        core = self._core()
        run = core.run(task, session_id)
        try:
            return run.result.result(timeout)
        except concurrent.futures.TimeoutError:
            error = core.timed_out(run, timeout)
            raise error from error.__cause__
        except KeyboardInterrupt:
            core.abandon(run)
            raise

    # The protocol's own calls.

    def prompt(self, text: str, session_id: Optional[str] = None) -> tuple[str, str]:
        """Queues a message for a turn of its own. Returns session id and message id once it is on disk."""
        params: dict[str, Any] = {"contentBlocks": [{"type": "text", "text": text}]}
        if session_id is not None:
            params["sessionId"] = session_id
        r = self._call("session/prompt", params)
        return r["sessionId"], r["messageId"]

    def steer(self, session_id: str, text: str) -> str:
        """Queues a message for the next step. Returns its id once it is on disk."""
        return self._call("session/steer", {"sessionId": session_id, "contentBlocks": [{"type": "text", "text": text}]})["messageId"]

    def cancel(self, session_id: str, keep_inbox: bool = False) -> None:
        """Ends the turn in hand and, unless keep_inbox, discards what is queued."""
        self._call("session/cancel", {"sessionId": session_id, "keepInbox": keep_inbox})

    def read(self, session_id: str, from_seq: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a session's log from a seq on, page by page."""
        more = True
        while more:
            page = self._call("session/read", {"sessionId": session_id, "fromSeq": from_seq})
            yield from page["events"]
            from_seq, more = page["nextSeq"], page["more"]

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the latest first, as ``deepseek sessions --json`` tells them."""
        return self._call("session/list", {})["sessions"]

    def close_session(self, session_id: str) -> None:
        """Ends the work on a session and frees it; what is queued is kept."""
        self._call("session/close", {"sessionId": session_id})

    def questions(self, session_id: str) -> list[OpenQuestion]:
        """The questions of a session that have no answer."""
        return [OpenQuestion._of(q) for q in self._call("questions/list", {"sessionId": session_id})["active"]]

    def answer(self, session_id: str, call_id: str, answers: Sequence[AnyAnswer]) -> bool:
        """Sends a late answer. False: the question is not one that waits for it. RequestRefused: REPLY_QUEUED, BAD_ANSWER."""
        params = {"sessionId": session_id, "callId": call_id, "answers": on_wire(answers)}
        return self._call("questions/answer", params)["accepted"]

    def withdraw(self, session_id: str, call_id: str) -> bool:
        """Takes a late answer back that is still queued."""
        return self._call("questions/withdraw", {"sessionId": session_id, "callId": call_id})["withdrawn"]

    def events(self, session_id: Optional[str] = None) -> "Notifications":
        """What the server tells from now on, of one session or of all; an iterator to be closed, or used in a with."""
        core = self._core()
        return Notifications(core, core.feed(session_id))

    def _core(self) -> Core:
        with self._mu:
            if self._core_ is None:
                raise ClientClosed("the client is not started, or closed")
            return self._core_

    def _call(self, method: str, params: dict[str, Any]) -> Any:
        return self._wait(self._core().request(method, params), method)

    def _wait(self, f: "Future[Any]", method: str) -> Any:
        try:
            return f.result(self._request_timeout)
        except concurrent.futures.TimeoutError:
            raise RequestTimeout(f"the server did not answer {method} within {self._request_timeout} s") from None


class Notifications:
    """An iterator over notifications. It ends with the client, and raises ServerDied or SlowConsumer."""

    def __init__(self, core: Core, feed: Feed) -> None:
        self._core, self._feed = core, feed

    def __iter__(self) -> "Notifications":
        return self

    def __next__(self) -> Notification:
        item = self._feed.items.get()
        if isinstance(item, Notification):
            return item
        self._feed.items.put(item)  # for whoever asks again
        if item is None:
            raise StopIteration
        raise item

    def close(self) -> None:
        """Ends the iteration, also for a thread that waits in it."""
        self._core.unfeed(self._feed)

    def __enter__(self) -> "Notifications":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _threaded(handler: Handler) -> Ask:
    def ask(q: QuestionRequest) -> "Future[Optional[Sequence[AnyAnswer]]]":
        f: "Future[Optional[Sequence[AnyAnswer]]]" = Future()

        def call() -> None:
            try:
                answers = handler(q)
            except BaseException as err:  # reported by the run
                settle(f, error=err)
            else:
                settle(f, answers)

        threading.Thread(target=call, name="deepseek-question", daemon=True).start()
        return f

    return ask
