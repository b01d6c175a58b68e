"""What can go wrong. Everything derives from DeepseekError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .types import RunResult


class DeepseekError(Exception):
    """The base of all errors of this package."""


class ServerNotFound(DeepseekError):
    """The server program could not be started."""


class ServerDied(DeepseekError):
    """The server has ended, or does not speak the protocol.

    What was asked of it may or may not have taken effect; what it acknowledged
    is on disk and can be gone on with by session id.
    """

    def __init__(self, message: str, returncode: Optional[int] = None, stderr: str = "") -> None:
        super().__init__(message)
        #: exit status, negative for a signal, None if the server had not ended
        self.returncode = returncode
        #: the last of what it wrote on standard error
        self.stderr = stderr


class ClientClosed(DeepseekError):
    """The client was closed, or not yet started."""


class RequestTimeout(DeepseekError):
    """The server did not answer a request in time. It may have taken effect."""


class RequestRefused(DeepseekError):
    """The server refused a request, or it is longer than the server takes (INVALID_REQUEST). Nothing was done."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(f"{code}: {message}" if code else message)
        #: a word in capitals: SESSION_BUSY, SESSION_NOT_FOUND, BAD_ANSWER, INVALID_PARAMS, ...
        self.code = code
        #: of INVALID_PARAMS: the parameter
        self.path = path


class RunInProgress(DeepseekError):
    """A run of this client owns the session already: runs of one session take turns."""


class RunTimeout(DeepseekError):
    """The run took longer than its caller allowed and was cancelled; what was queued is kept.

    If a question handler had failed by then, that is the cause.
    """

    def __init__(self, message: str, session_id: Optional[str]) -> None:
        super().__init__(message)
        self.session_id = session_id


class MalformedEvent(DeepseekError):
    """An event of the interval is not what the log promises, such as a turn/end without a reason, or not the next one."""


class HandlerFailed(DeepseekError):
    """A question handler raised, or gave an answer that does not fit. The cause is chained.

    A timed question was left to its time, or to other clients; one without a time
    limit was closed without an answer, and an approval was denied. The run went on
    to its end.
    """

    def __init__(self, message: str, result: "RunResult") -> None:
        super().__init__(message)
        #: of the run, complete
        self.result = result


class SlowConsumer(DeepseekError):
    """An iterator over notifications was read too slowly and has lost its place."""
