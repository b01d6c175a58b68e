"""The fold of one owned idle-to-idle interval over its events."""

from __future__ import annotations

import time
from typing import Any, Optional

from ._shapes import EVENTS, check
from .errors import MalformedEvent
from .types import OpenQuestion, RunResult, Usage


class Interval:
    """Collects from the receipt of a message to the next idle. One thread's."""

    def __init__(self) -> None:
        self.message_id: Optional[str] = None  # until the prompt is answered
        self.session_id: Optional[str] = None
        self.done = False
        self._begun = time.monotonic()
        self._early: list[tuple[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def receipt(self, session_id: str, message_id: str) -> bool:
        """The prompt was answered. True when the interval has ended with what came before the answer."""
        self.session_id, self.message_id = session_id, message_id
        early, self._early = self._early, []
        return any([self.feed(kind, payload) for kind, payload in early])

    def feed(self, kind: str, payload: Any) -> bool:
        """An event or a status of the session, in order. True when the interval has ended with it."""
        if self.done:
            return False
        if self.message_id is None:
            self._early.append((kind, payload))
            return False
        if kind == "status":
            self.done = bool(self._events) and payload == "idle"
            return self.done
        if self._events or self._is_receipt(payload):
            self._events.append(payload)
        return False

    def _is_receipt(self, e: dict[str, Any]) -> bool:
        if e["type"] != "agent/inbox/spliced":
            return False
        return any(m["id"] == self.message_id for m in _data(e).get("inserted", []))

    def result(self, active: list[dict[str, Any]]) -> RunResult:
        """The result, given the questions without an answer. Raises MalformedEvent."""
        final, finish, error = "", None, None
        usage = Usage()
        steps = denied = 0
        for want, e in enumerate(self._events, self._events[0]["seq"]):
            if e["seq"] != want:
                raise MalformedEvent(f"event {e['seq']} comes where event {want} is due")
            kind, data = e["type"], _data(e)
            if kind == "assistant/message":
                text = "".join(b.get("text", "") for b in data["message"]["content"] if b["type"] == "text")
                final = text or final
                if "usage" in data:
                    usage = _add(usage, data["usage"])
            elif kind in ("compaction/summary", "compaction/end"):  # a summary is paid for like an answer
                if "usage" in data:
                    usage = _add(usage, data["usage"])
            elif kind == "step/start":
                steps += 1
            elif kind == "approval/decided":
                denied += data["decision"] == "denied"
            elif kind == "turn/end":
                finish = data["reason"]["kind"]
                if not finish:
                    raise MalformedEvent(f"event {e['seq']} ({kind}) has no reason")
                error = data["reason"].get("error")
        assert self.session_id is not None and self.message_id is not None
        return RunResult(
            session_id=self.session_id, message_id=self.message_id, final_response=final, finish_reason=finish,
            usage=usage, steps=steps, duration_ms=round((time.monotonic() - self._begun) * 1000), denied=denied,
            questions=[OpenQuestion._of(q) for q in active], events=self._events, error=error,
        )


def _data(e: dict[str, Any]) -> dict[str, Any]:
    try:
        check(f"event {e['seq']} ({e['type']})", e["data"], EVENTS.get(e["type"], {}))
    except ValueError as err:
        raise MalformedEvent(str(err)) from None
    return e["data"]


def _add(u: Usage, v: dict[str, Any]) -> Usage:
    cost = u.cost_usd
    if v.get("costUsd") is not None:
        cost = v["costUsd"] + (cost or 0)
    return Usage(
        u.input_tokens + v["inputTokens"], u.cache_read_tokens + v["cacheReadTokens"],
        u.output_tokens + v["outputTokens"], u.reasoning_tokens + v.get("reasoningTokens", 0), cost,
    )
