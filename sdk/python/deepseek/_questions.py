"""How a question handler's answers reach the agent."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from typing import Any, Callable, Mapping, Optional, Sequence

from .errors import RequestRefused
from .types import Answer, AnyAnswer, Question, QuestionRequest

#: starts a handler and yields its answers
Ask = Callable[[QuestionRequest], "Future[Optional[Sequence[AnyAnswer]]]"]
Send = Callable[..., "Future[Any]"]


def on_wire(answers: Sequence[AnyAnswer]) -> list[dict[str, Any]]:
    """A batch of answers as the server takes it. What is none, or no JSON, is a TypeError or ValueError."""
    if isinstance(answers, (str, bytes, Mapping)):
        raise TypeError("answers are a list of Answer or dict, one for each question")
    wire = []
    for a in answers:
        if isinstance(a, Answer):
            wire.append(a._wire())
        elif isinstance(a, Mapping):
            wire.append({"selected": [], **{k: v for k, v in a.items() if v is not None}})
        else:
            raise TypeError(f"an answer is an Answer or a dict, not {a!r}")
    json.dumps(wire)
    return wire


class Wait:
    """One foreground wait that this client has a claim on.

    With the claim the client owns the countdown: at zero it gives the question
    up, which then goes pending, and what the handler still answers is sent as a
    late answer. An answer that loses to the end of the wait's time is sent as a
    late answer too, once. ``_mu`` guards the outcome; whoever takes it, the handler's
    end, the timer, or the server, is the only one to act.
    """

    def __init__(
        self, session_id: str, note: dict[str, Any], send: Send,
        failed: Callable[[BaseException], None], let_go: Callable[[], None],
    ) -> None:
        self._ids = {"sessionId": session_id, "callId": note["callId"]}
        self._session_id = session_id
        self._note = note
        self._send, self._failed, self._let_go = send, failed, let_go
        self._mu = threading.Lock()
        self._state = "claimed"  # then one of: answered, expired, ended
        self._outcome = ""
        self._lost: Optional[dict[str, Any]] = None  # what was answered when another settlement had won
        self._timer: Optional[threading.Timer] = None

    def begin(self, remaining_ms: int, ask: Ask) -> None:
        """The claim holds. Called once, in the reading thread."""
        remaining = remaining_ms / 1000 if remaining_ms >= 0 else None
        if remaining is not None:
            self._timer = threading.Timer(remaining, self._expire)
            self._timer.daemon = True
            self._timer.start()
        request = QuestionRequest(
            self._session_id, self._note["callId"], self._note["kind"],
            [Question._of(q) for q in self._note["questions"]], self._note["timed"], remaining,
        )
        try:
            asked = ask(request)
        except BaseException as err:
            self._give_up(err)
            return
        asked.add_done_callback(self._answered)

    def over(self, outcome: str = "") -> None:
        """The wait has ended, or the connection has."""
        with self._mu:
            self._outcome = self._outcome or outcome
            if self._state == "claimed":
                self._state = "ended"
            lost, self._lost = self._lost, None
        self._stop()
        if lost is not None and outcome == "pending":
            self._late(lost)

    def _take(self, state: str) -> str:
        """Takes the outcome if nobody has. Returns what the state was."""
        with self._mu:
            was = self._state
            if was == "claimed":
                self._state = state
        self._stop()
        return was

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self._take("expired") == "claimed":
            self._send("questions/respond", {**self._ids, "error": {"code": "ASK_TIMED_OUT"}})

    def _answered(self, f: "Future[Optional[Sequence[AnyAnswer]]]") -> None:
        try:
            answers = f.result()
            wire = None if answers is None else on_wire(answers)
        except BaseException as err:
            self._give_up(err)
            return
        if wire is None:
            self._give_up(None)
            return
        was = self._take("answered")
        if was == "claimed":
            params = {**self._ids, "answers": wire}
            self._send("questions/respond", params).add_done_callback(lambda r: self._responded(r, params))
        elif was == "expired" or self._outcome == "pending":
            self._late({**self._ids, "answers": wire})

    def _responded(self, r: "Future[Any]", params: dict[str, Any]) -> None:
        error = r.exception()
        if error is not None:
            if isinstance(error, RequestRefused):
                self._failed(error)  # before the agent may go on and the run end
                self._leave(failed=True)
        elif not r.result()["accepted"]:
            with self._mu:
                outcome = self._outcome
                if not outcome:
                    self._lost = params  # until it is known how the wait ended
            if outcome == "pending":
                self._late(params)

    def _late(self, params: dict[str, Any]) -> None:
        def sent(r: "Future[Any]") -> None:
            error = r.exception()
            # Somebody else's reply may be on its way: then this one has lost.
            if isinstance(error, RequestRefused) and error.code != "REPLY_QUEUED":
                self._failed(error)

        self._send("questions/answer", params).add_done_callback(sent)

    def _leave(self, failed: bool) -> None:
        """Ends what is not answered here.

        A wait with a time is left to that and to other clients, and so is a
        question that the handler passes on. Without a time a handler that has
        failed would hold the run for ever, so its wait is closed; and no answer to
        an approval is a no.
        """
        permits = self._note["kind"] in ("approval", "plan-review")
        if self._note["timed"] or not (failed or permits):
            self._send("questions/detach", self._ids)
            self._let_go()
        else:
            self._send("questions/respond", {**self._ids, "error": {"code": "ASK_CANCELLED"}})

    def _give_up(self, error: Optional[BaseException]) -> None:
        if error is not None:
            self._failed(error)  # as above
        if self._take("ended") == "claimed":
            self._leave(failed=error is not None)
