"""Shapes of what the server says.

A type, or a dict of members (a ? behind the name: it may be left out), or a list of
one element's shape, or a number that must be this one.
"""

from __future__ import annotations

from typing import Any

LINE = {
    "method?": str, "params?": dict,
    "error?": {"code": int, "message": str, "data?": {"code?": str, "path?": str}},
}
_EVENT = {"seq": int, "type": str, "time": int, "data": dict}
_QUESTIONS = [{
    "id": str, "question": str, "header?": str, "detail?": str, "multi_select?": bool,
    "options?": [{"label": str, "description?": str}],
}]

#: of results
ANSWERS: dict[str, Any] = {
    "initialize": {"protocolVersion": 1},
    "session/prompt": {"sessionId": str, "messageId": str},
    "session/steer": {"messageId": str},
    "session/cancel": {},
    "session/read": {"events": [_EVENT], "nextSeq": int, "more": bool},
    "session/list": {"sessions": [dict]},
    "session/close": {},
    "questions/list": {"active": [{"callId": str, "state": str, "queued": bool, "questions": _QUESTIONS, "answer?": str}]},
    "questions/attachWait": {"attached": bool},
    "questions/detach": {},
    "questions/respond": {"accepted": bool},
    "questions/answer": {"accepted": bool},
    "questions/withdraw": {"withdrawn": bool},
    "shutdown": {},
}

#: of the parameters of notifications; others are of NOTE
NOTES: dict[str, Any] = {
    "session.event": {"sessionId": str, "event": _EVENT},
    "session.status": {"sessionId": str, "status": str},
    "questions/request": {"sessionId": str, "callId": str, "kind": str, "questions": _QUESTIONS, "timed": bool},
    "questions/wait": {"sessionId": str, "callId": str, "remainingMs": int},
    "questions/waitEnded": {"sessionId": str, "callId": str, "outcome": str},
}
NOTE = {"sessionId?": str}

_USAGE = {"inputTokens": int, "cacheReadTokens": int, "outputTokens": int, "reasoningTokens?": int, "costUsd?": float}
#: of the data of events, as far as they are looked into
EVENTS: dict[str, Any] = {
    "agent/inbox/spliced": {"inserted?": [{"id": str}]},
    "assistant/message": {"message": {"content": [{"type": str, "text?": str}]}, "usage?": _USAGE},
    "compaction/summary": {"usage?": _USAGE},
    "compaction/end": {"usage?": _USAGE},
    "approval/decided": {"decision": str},
    "turn/end": {"reason": {"kind": str, "error?": {"code": str, "message": str, "status?": int}}},
}

_NAMES = {str: "string", float: "number", int: "whole number", bool: "boolean", dict: "object"}


def check(what: str, v: Any, shape: Any) -> None:
    """A ValueError tells what of a value is not of its shape."""
    if isinstance(shape, dict):
        check(what, v, dict)
        for name, of in shape.items():
            key = name.removesuffix("?")
            if key in v:
                check(f"{key} of {what}", v[key], of)
            elif key == name:
                raise ValueError(f"{key} of {what} is missing")
    elif isinstance(shape, list):
        if not isinstance(v, list):
            raise ValueError(f"{what} is no list")
        for i, e in enumerate(v):
            check(f"{i} of {what}", e, shape[0])
    elif isinstance(shape, int):
        if type(v) is not int or v != shape:
            raise ValueError(f"{what} is {v}, and this package speaks {shape}")
    elif type(v) is not shape and (shape is not float or type(v) is not int):
        raise ValueError(f"{what} is no {_NAMES[shape]}")
