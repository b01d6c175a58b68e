"""What Client and AsyncClient share: everything but the way of waiting."""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from typing import Any, Callable, Mapping, Optional, Sequence

from ._connection import Connection, settle
from ._interval import Interval
from ._questions import Ask, Wait
from .errors import ClientClosed, DeepseekError, HandlerFailed, MalformedEvent, RunInProgress, RunTimeout, SlowConsumer
from .types import Notification, RunResult

_BEHIND = 100_000  # notifications that may wait for an iterator


class Run:
    """A run in hand."""

    def __init__(self, session_id: Optional[str]) -> None:
        self.session_id = session_id
        self.interval = Interval()
        self.result: "Future[RunResult]" = Future()
        self.failure: Optional[BaseException] = None  # of a question handler
        self.abandoned = False  # before its session had a name; guarded by the core's _mu


class Feed:
    """A queue of notifications for one iterator. None ends it, an error ends it with that."""

    def __init__(self, session_id: Optional[str]) -> None:
        self.session_id = session_id
        self.items: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self.open = True


class Core:
    """Owns the connection, the runs in hand, the claims and the feeds.

    ``_mu`` guards the collections. Notifications are dispatched by the reading
    thread alone, so the order in which runs and feeds see them is the server's.
    """

    def __init__(
        self, command: Sequence[str], env: Optional[Mapping[str, str]], params: dict[str, Any],
        on_question: Optional[Ask], on_approval: Optional[Ask],
    ) -> None:
        self._ask = {"question": on_question, "legacy": on_question, "approval": on_approval, "plan-review": on_approval}
        self._mu = threading.RLock()
        self._runs: list[Run] = []
        self._waits: dict[tuple[str, str], Wait] = {}
        self._feeds: list[Feed] = []
        self._over: Optional[DeepseekError] = None
        self._connection = Connection(command, env, self._notified, self._ended)
        self.initialized = self.request("initialize", params)

    def request(self, method: str, params: dict[str, Any]) -> "Future[Any]":
        return self._connection.request(method, params)

    # Runs.

    def run(self, task: str, session_id: Optional[str]) -> Run:
        run = Run(session_id)
        with self._mu:
            if session_id is not None and any(r.session_id == session_id for r in self._runs):
                raise RunInProgress(f"a run of session {session_id} is at work already")
            self._runs.append(run)
        params: dict[str, Any] = {"contentBlocks": [{"type": "text", "text": task}]}
        if session_id is not None:
            params["sessionId"] = session_id

        def begun(r: dict[str, Any]) -> None:
            with self._mu:
                run.session_id = r["sessionId"]
                abandoned = run.abandoned
            if abandoned:
                self._cancel(run)
            self._feed(run, run.interval.receipt, r["sessionId"], r["messageId"])

        def refused(f: "Future[Any]") -> None:
            if f.exception() is not None:
                self._drop(run)
                settle(run.result, error=f.exception())

        self._connection.request("session/prompt", params, begun).add_done_callback(refused)
        return run

    def timed_out(self, run: Run, timeout: Optional[float]) -> RunTimeout:
        """Cancels a run whose time is over. The error names the handler that had failed by then."""
        self.abandon(run)
        message = f"the run took longer than {timeout} s and was cancelled"
        if run.failure is not None:
            message += f"; a question handler had failed: {run.failure!r}"
        error = RunTimeout(message, run.session_id)
        error.__cause__ = run.failure
        return error

    def abandon(self, run: Run) -> None:
        """Cancels a run that nobody waits for any more. What is queued is kept."""
        self._drop(run)
        with self._mu:
            run.abandoned = run.session_id is None  # then begun cancels it
        if not run.abandoned:
            self._cancel(run)

    def _cancel(self, run: Run) -> None:
        self.request("session/cancel", {"sessionId": run.session_id, "keepInbox": True})

    def _drop(self, run: Run) -> None:
        with self._mu:
            if run in self._runs:
                self._runs.remove(run)

    def _feed(self, run: Run, take: Callable[..., bool], *what: Any) -> None:
        try:
            ended = take(*what)
        except MalformedEvent as err:
            self.abandon(run)
            settle(run.result, error=err)
            return
        if ended:
            self._finish(run)

    def _finish(self, run: Run) -> None:
        """The interval has ended. What has no answer is asked for, and then the run is over."""

        def told(f: "Future[Any]") -> None:
            self._drop(run)
            try:
                result = run.interval.result(f.result()["active"])
            except Exception as err:
                settle(run.result, error=err)
                return
            if run.failure is None:
                settle(run.result, result)
                return
            error = HandlerFailed(f"a question handler failed: {run.failure!r}", result)
            error.__cause__ = run.failure
            settle(run.result, error=error)

        self.request("questions/list", {"sessionId": run.session_id}).add_done_callback(told)

    # What the server tells.

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        session_id = params.get("sessionId", "")
        if method in ("session.event", "session.status"):
            kind = method.removeprefix("session.")
            with self._mu:
                runs = [r for r in self._runs if r.session_id == session_id]
            for r in runs:
                self._feed(r, r.interval.feed, kind, params[kind])
        elif method == "questions/request":
            self._claim(session_id, params)
        elif method in ("questions/wait", "questions/waitEnded"):
            self._wait(method, session_id, params)
            return
        note = Notification(method, session_id, params)
        with self._mu:
            for f in self._feeds:
                if f.session_id in (None, session_id):
                    self._tell(f, note)

    def _claim(self, session_id: str, note: dict[str, Any]) -> None:
        key = (session_id, note["callId"])
        if self._ask.get(note["kind"]) is None:
            return

        def failed(err: BaseException) -> None:
            with self._mu:
                for r in self._runs:
                    if r.session_id == session_id and r.failure is None:
                        r.failure = err

        def let_go() -> None:
            with self._mu:
                self._waits.pop(key, None)

        with self._mu:
            self._waits[key] = Wait(session_id, note, self.request, failed, let_go)

        def attached(f: "Future[Any]") -> None:
            if f.exception() is not None or not f.result()["attached"]:
                let_go()

        self.request("questions/attachWait", {"sessionId": session_id, "callId": note["callId"]}).add_done_callback(attached)

    def _wait(self, method: str, session_id: str, params: dict[str, Any]) -> None:
        key = (session_id, params["callId"])
        with self._mu:
            wait = self._waits.get(key) if method == "questions/wait" else self._waits.pop(key, None)
        if wait is None:
            return
        if method == "questions/waitEnded":
            wait.over(params["outcome"])
            return
        ask = self._ask[wait._note["kind"]]
        assert ask is not None
        wait.begin(params["remainingMs"], ask)

    # Iterators.

    def feed(self, session_id: Optional[str]) -> Feed:
        f = Feed(session_id)
        with self._mu:
            if self._over is not None:
                f.items.put(None if isinstance(self._over, ClientClosed) else self._over)
            else:
                self._feeds.append(f)
        return f

    def unfeed(self, f: Feed) -> None:
        with self._mu:
            f.open = False
            if f in self._feeds:
                self._feeds.remove(f)
            f.items.put(None)

    def _tell(self, f: Feed, note: Notification) -> None:
        if not f.open:
            return
        if f.items.qsize() >= _BEHIND:
            f.open = False
            f.items.put(SlowConsumer(f"{_BEHIND} notifications wait to be read"))
            return
        f.items.put(note)

    # The end.

    def _ended(self, why: DeepseekError) -> None:
        with self._mu:
            if self._over is None:
                self._over = why
            over = self._over
            runs, self._runs = self._runs, []
            waits, self._waits = self._waits, {}
            feeds, self._feeds = self._feeds, []
        for r in runs:
            settle(r.result, error=over)
        for w in waits.values():
            w.over()
        for f in feeds:
            f.items.put(None if isinstance(over, ClientClosed) else over)

    def close(self) -> None:
        """Ends the server: by shutdown, then the end of its input, then signals. It does not raise."""
        with self._mu:
            if self._over is None:
                self._over = ClientClosed("the client was closed")
            self._connection.closed = self._over
        c = self._connection
        stopped = self.request("shutdown", {})
        c.close_input()
        # One that has not even answered the first request has no sessions to close.
        answered = self.initialized.done() and not self.initialized.cancelled()
        c.stop(15 if answered else 1)
        stopped.cancel()
        c.join()


def parameters(
    cwd: Optional[str], model: Optional[str], mode: Optional[str], timeout: Optional[int], permission: Optional[str],
    questions: bool, approvals: bool,
) -> dict[str, Any]:
    """The parameters of initialize; what is None is left to the server's settings."""
    given = {"model": model, "mode": mode, "timeout": timeout, "permission": permission}
    params: dict[str, Any] = {"cwd": os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())}
    params.update({k: v for k, v in given.items() if v is not None})
    params["capabilities"] = {k: True for k, v in (("questions", questions), ("approvals", approvals)) if v}
    return params
