"""The client for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from concurrent.futures import Future
from typing import Any, AsyncIterator, Awaitable, Callable, Mapping, Optional, Sequence, Union

from ._core import Core, parameters
from ._questions import Ask, on_wire
from .errors import ClientClosed, RequestTimeout
from .types import AnyAnswer, Notification, OpenQuestion, QuestionRequest, RunResult

#: As client.Handler, or a coroutine function; called in the event loop.
AsyncHandler = Callable[[QuestionRequest], Union[Optional[Sequence[AnyAnswer]], Awaitable[Optional[Sequence[AnyAnswer]]]]]


class AsyncClient:
    """Client for asyncio: the same options, methods and errors, awaited.

    It belongs to the event loop it was started in. A run whose task is cancelled
    is cancelled at the server too; what is queued is kept.
    """

    def __init__(
        self,
        command: Sequence[str] = ("deepseek", "rpc"),
        cwd: Optional[str] = None,
        model: Optional[str] = None,
        mode: Optional[str] = None,
        timeout: Optional[int] = None,
        permission: Optional[str] = None,
        on_question: Optional[AsyncHandler] = None,
        on_approval: Optional[AsyncHandler] = None,
        env: Optional[Mapping[str, str]] = None,
        request_timeout: float = 60.0,
    ) -> None:
        self._command, self._env = tuple(command), env
        self._params = parameters(cwd, model, mode, timeout, permission, on_question is not None, on_approval is not None)
        self._handlers = (on_question, on_approval)
        self._request_timeout = request_timeout
        self._core_: Optional[Core] = None
        self._closed = False

    async def start(self) -> "AsyncClient":
        """Starts the server. Once."""
        if self._closed or self._core_ is not None:
            raise ClientClosed("a client is started once")
        loop = asyncio.get_running_loop()
        on_question, on_approval = (h and _in_loop(h, loop) for h in self._handlers)
        self._core_ = core = Core(self._command, self._env, self._params, on_question, on_approval)
        try:
            await self._wait(core.initialized, "initialize")
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Closes all sessions and ends the server. May be called again."""
        core, self._core_, self._closed = self._core_, None, True
        if core is not None:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, core.close))

    async def __aenter__(self) -> "AsyncClient":
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def run(self, task: str, session_id: Optional[str] = None, timeout: Optional[float] = None) -> RunResult:
        """As Client.run."""
        core = self._core()
        run = core.run(task, session_id)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(run.result), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            error = core.timed_out(run, timeout)
            raise error from error.__cause__
        except asyncio.CancelledError:
            core.abandon(run)
            raise

    async def prompt(self, text: str, session_id: Optional[str] = None) -> tuple[str, str]:
        """As Client.prompt."""
        params: dict[str, Any] = {"contentBlocks": [{"type": "text", "text": text}]}
        if session_id is not None:
            params["sessionId"] = session_id
        r = await self._call("session/prompt", params)
        return r["sessionId"], r["messageId"]

    async def steer(self, session_id: str, text: str) -> str:
        """As Client.steer."""
        r = await self._call("session/steer", {"sessionId": session_id, "contentBlocks": [{"type": "text", "text": text}]})
        return r["messageId"]

    async def cancel(self, session_id: str, keep_inbox: bool = False) -> None:
        """As Client.cancel."""
        await self._call("session/cancel", {"sessionId": session_id, "keepInbox": keep_inbox})

    async def read(self, session_id: str, from_seq: int = 0) -> AsyncIterator[dict[str, Any]]:
        """As Client.read."""
        more = True
        while more:
            page = await self._call("session/read", {"sessionId": session_id, "fromSeq": from_seq})
            for e in page["events"]:
                yield e
            from_seq, more = page["nextSeq"], page["more"]

    async def sessions(self) -> list[dict[str, Any]]:
        """As Client.sessions."""
        return (await self._call("session/list", {}))["sessions"]

    async def close_session(self, session_id: str) -> None:
        """As Client.close_session."""
        await self._call("session/close", {"sessionId": session_id})

    async def questions(self, session_id: str) -> list[OpenQuestion]:
        """As Client.questions."""
        return [OpenQuestion._of(q) for q in (await self._call("questions/list", {"sessionId": session_id}))["active"]]

    async def answer(self, session_id: str, call_id: str, answers: Sequence[AnyAnswer]) -> bool:
        """As Client.answer."""
        params = {"sessionId": session_id, "callId": call_id, "answers": on_wire(answers)}
        return (await self._call("questions/answer", params))["accepted"]

    async def withdraw(self, session_id: str, call_id: str) -> bool:
        """As Client.withdraw."""
        return (await self._call("questions/withdraw", {"sessionId": session_id, "callId": call_id}))["withdrawn"]

    def events(self, session_id: Optional[str] = None) -> AsyncIterator[Notification]:
        """As Client.events: what the server tells from this call on."""
        core = self._core()
        feed = core.feed(session_id)

        async def notifications() -> AsyncIterator[Notification]:
            loop = asyncio.get_running_loop()
            pool = concurrent.futures.ThreadPoolExecutor(1, "deepseek-events")
            try:
                while True:
                    item = await loop.run_in_executor(pool, feed.items.get)
                    if item is None:
                        return
                    if not isinstance(item, Notification):
                        raise item
                    yield item
            finally:
                core.unfeed(feed)  # wakes the thread that waits
                pool.shutdown(wait=False)

        return notifications()

    def _core(self) -> Core:
        if self._core_ is None:
            raise ClientClosed("the client is not started, or closed")
        return self._core_

    async def _call(self, method: str, params: dict[str, Any]) -> Any:
        return await self._wait(self._core().request(method, params), method)

    async def _wait(self, f: "Future[Any]", method: str) -> Any:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(f), self._request_timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise RequestTimeout(f"the server did not answer {method} within {self._request_timeout} s") from None


def _in_loop(handler: AsyncHandler, loop: asyncio.AbstractEventLoop) -> Ask:
    async def call(q: QuestionRequest) -> Optional[Sequence[AnyAnswer]]:
        answers = handler(q)
        if inspect.isawaitable(answers):
            answers = await answers
        return answers  # type: ignore[return-value]

    return lambda q: asyncio.run_coroutine_threadsafe(call(q), loop)
