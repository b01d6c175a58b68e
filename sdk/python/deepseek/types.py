"""The vocabulary of the package. Instances are plain data; nothing here talks to the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union


@dataclass(frozen=True)
class Option:
    """One choice of a question."""

    label: str
    description: str = ""


@dataclass(frozen=True)
class Question:
    """One question of a batch."""

    id: str
    question: str
    header: str = ""
    #: longer text: a command, a diff, a plan
    detail: str = ""
    #: empty for a question that is answered in words
    options: list[Option] = field(default_factory=list)
    multi_select: bool = False

    @classmethod
    def _of(cls, v: dict[str, Any]) -> "Question":
        return cls(
            v["id"], v["question"], v.get("header", ""), v.get("detail", ""),
            [Option(o["label"], o.get("description", "")) for o in v.get("options") or []], v.get("multi_select", False),
        )


@dataclass(frozen=True)
class Answer:
    """The answer to one question. Neither selected nor custom means that it is skipped."""

    id: str
    #: labels; one at most unless the question is multi_select
    selected: list[str] = field(default_factory=list)
    #: words instead of, or with multi_select beside, the labels
    custom: Optional[str] = None

    def _wire(self) -> dict[str, Any]:
        w: dict[str, Any] = {"id": self.id, "selected": list(self.selected)}
        if self.custom is not None:
            w["custom"] = self.custom
        return w


#: an answer as it may be given: an Answer, or a dict {"id": …, "selected": […]} with "custom" where there are words
AnyAnswer = Union[Answer, Mapping[str, Any]]


@dataclass(frozen=True)
class QuestionRequest:
    """What a question handler is given: a batch that wants one answer a question."""

    session_id: str
    call_id: str
    #: question, legacy (a question without a time limit), approval or plan-review
    kind: str
    questions: list[Question]
    #: the wait ends by itself, and the question then stays answerable
    timed: bool
    #: seconds that were left when the handler was called, None without a limit
    remaining: Optional[float]


@dataclass(frozen=True)
class OpenQuestion:
    """A question that has no answer when a run ends."""

    call_id: str
    #: open or continued
    state: str
    #: an answer is queued that the agent has not read yet
    queued: bool
    questions: list[Question]
    #: the command that answers it, ready for a shell
    answer: str

    @classmethod
    def _of(cls, v: dict[str, Any]) -> "OpenQuestion":
        return cls(v["callId"], v["state"], v["queued"], [Question._of(q) for q in v["questions"]], v.get("answer", ""))


@dataclass(frozen=True)
class Usage:
    """Tokens and cost."""

    #: without cache hits
    input_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    #: US dollars, None where no price is known
    cost_usd: Optional[float] = None


@dataclass(frozen=True)
class RunResult:
    """What the owner of an idle-to-idle interval may say of it.

    The interval is wider than the task: whatever joined before the agent was
    idle belongs to it, and nothing in it is attributed to the task's message.
    """

    session_id: str
    #: of the task
    message_id: str
    #: text of the last assistant message that has text, "" if none has
    final_response: str
    #: how the last turn ended: completed, aborted, blocked, error, max-tokens, max-steps; None if none ended
    finish_reason: Optional[str]
    #: summed over the interval
    usage: Usage
    steps: int
    #: measured by this client
    duration_ms: int
    #: approvals that were refused
    denied: int
    #: without an answer when the agent was idle
    questions: list[OpenQuestion]
    #: of the interval, as logged, from the task's receipt on
    events: list[dict[str, Any]]
    #: {"code", "message"} of the last turn, if it ended with an error
    error: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class Notification:
    """Something that the server told."""

    #: session.event, session.status, session.delta, questions/request, questions/settled
    method: str
    session_id: str
    params: dict[str, Any]

    @property
    def event(self) -> Optional[dict[str, Any]]:
        """The event as logged, of a session.event."""
        return self.params.get("event") if self.method == "session.event" else None
