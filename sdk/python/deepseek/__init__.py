"""Runs of the deepseek coding agent from a program.

``Client.run`` owns one interval of a session, from the receipt of a task to the
moment when the agent is idle again, and returns what came of it. ``AsyncClient``
is the same for asyncio.
"""

from .aio import AsyncClient, AsyncHandler
from .client import Client, Handler, Notifications
from .errors import (
    ClientClosed, DeepseekError, HandlerFailed, MalformedEvent, RequestRefused, RequestTimeout, RunInProgress, RunTimeout,
    ServerDied, ServerNotFound, SlowConsumer,
)
from .types import Answer, Notification, OpenQuestion, Option, Question, QuestionRequest, RunResult, Usage

__all__ = [
    "Answer", "AsyncClient", "AsyncHandler", "Client", "ClientClosed", "DeepseekError", "Handler", "HandlerFailed",
    "MalformedEvent", "Notification", "Notifications", "OpenQuestion", "Option", "Question", "QuestionRequest",
    "RequestRefused", "RequestTimeout", "RunInProgress", "RunResult", "RunTimeout", "ServerDied", "ServerNotFound",
    "SlowConsumer", "Usage",
]
