"""The server's process and the JSON-RPC connection to it."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Any, Callable, Mapping, Optional, Sequence

from ._shapes import ANSWERS, LINE, NOTE, NOTES, check
from .errors import DeepseekError, RequestRefused, ServerDied, ServerNotFound

_STDERR_KEPT = 8 << 10  # bytes
_LONGEST_REQUEST = 64 << 20  # bytes that the server takes in a line


def settle(f: "Future[Any]", result: Any = None, error: Optional[BaseException] = None) -> None:
    """Sets a future that its holder may have cancelled."""
    try:
        if error is not None:
            f.set_exception(error)
        else:
            f.set_result(result)
    except InvalidStateError:
        pass  # nobody waits for it any more


class Connection:
    """Starts the server and talks to it.

    Three threads: one reads answers and notifications, in order, and is the only
    one that calls ``notified`` and ``ended``; one writes, so that nobody who calls
    waits for a server that is busy; one keeps the end of standard error. They end
    with the process. ``_mu`` guards what requests and the reader share.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Optional[Mapping[str, str]],
        notified: Callable[[str, dict[str, Any]], None],
        ended: Callable[[DeepseekError], None],
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=None if env is None else {**os.environ, **env},
            )
        except (OSError, ValueError) as err:
            raise ServerNotFound(f"cannot start {command[0]!r}: {err}") from err
        self._notified, self._ended = notified, ended
        self._ids = itertools.count(1)
        self._mu = threading.Lock()
        self._pending: dict[int, tuple[str, "Future[Any]", Optional[Callable[[Any], None]]]] = {}
        self._over: Optional[DeepseekError] = None
        #: what requests fail with once the client was closed; set before the server is asked to end
        self.closed: Optional[DeepseekError] = None
        self._reason = ""  # what the server said of the end of the connection
        self._stderr = b""
        self._out: "queue.SimpleQueue[Optional[bytes]]" = queue.SimpleQueue()
        self._errors = threading.Thread(target=self._keep_stderr, name="deepseek-stderr", daemon=True)
        self._writer = threading.Thread(target=self._write, name="deepseek-writer", daemon=True)
        self._reader = threading.Thread(target=self._read, name="deepseek-reader", daemon=True)
        for t in (self._errors, self._writer, self._reader):
            t.start()

    def request(self, method: str, params: dict[str, Any], then: Optional[Callable[[Any], None]] = None) -> "Future[Any]":
        """Sends a request. ``then`` is called with the result in the reading thread, before anything that came behind it."""
        f: "Future[Any]" = Future()
        line = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        data = _encode(line)
        if len(data) > _LONGEST_REQUEST:
            why = f"{method} would be a line of {len(data)} bytes; the server takes at most {_LONGEST_REQUEST}"
            settle(f, error=RequestRefused(_NAMES[_INVALID_REQUEST], why))
            return f
        data += b"\n"
        with self._mu:
            if self._over is None:
                self._pending[line["id"]] = (method, f, then)
                self._out.put(data)
                return f
            over = self._over
        settle(f, error=over)
        return f

    def close_input(self) -> None:
        """Lets the server see the end of its input, behind what was sent."""
        self._out.put(None)

    def stop(self, patience: float) -> bool:
        """Waits for the end of the server, whom signals end after so many seconds. Whether it ended by itself."""
        if self._ends(patience):
            return True
        self._process.terminate()
        if not self._ends(6):
            self._process.kill()
            self._process.wait()
        return False

    def _ends(self, timeout: float) -> bool:
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def join(self) -> None:
        """Waits for the threads. The process has ended."""
        self.close_input()
        for t in (self._reader, self._writer, self._errors):
            if t is not threading.current_thread():
                # A grandchild may hold the other end of a pipe: do not wait for it.
                t.join(2)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None and not (self._reader.is_alive() or self._errors.is_alive()):
                stream.close()

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            while (data := self._out.get()) is not None:
                stdin.write(data)
                stdin.flush()
        except (OSError, ValueError):
            pass  # the server has ended: the reader finds out
        try:
            stdin.close()
        except OSError:
            pass  # what was buffered cannot be delivered any more

    def _keep_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while data := stream.read1(4096):  # type: ignore[attr-defined]
            with self._mu:
                self._stderr = (self._stderr + data)[-_STDERR_KEPT:]

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        why = ""
        try:
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # cut off by its end
                self._handle(line)
                if self._reason:
                    break
        except Exception as err:  # whatever it is, everybody who waits is told
            why = f"the server's output is not understood: {err if isinstance(err, ValueError) else repr(err)}"
            self._process.kill()
        self._finish(why)

    def _handle(self, line: bytes) -> None:
        m = json.loads(line)
        check("the line", m, LINE)
        if "method" in m:
            method, params = m["method"], m.get("params", {})
            check(method, params, NOTES.get(method, NOTE))
            self._notified(method, params)
            return
        id, error = m.get("id"), m.get("error")
        if id is not None:
            check("id of the line", id, int)
        elif error is None:
            raise ValueError("the line is no answer and no notification")
        else:
            id = self._unnamed(error)
        with self._mu:
            method, f, then = self._pending.get(id, ("", None, None))
        if f is None:
            return
        result = m.get("result")
        if error is None:  # what is not understood stays pending, and fails with the connection
            check(f"the answer to {method}", result, ANSWERS[method])
            if then is not None:
                then(result)
        with self._mu:
            del self._pending[id]
        settle(f, result, error and _refusal(error))

    def _unnamed(self, error: dict[str, Any]) -> Optional[int]:
        """Which request an error that names none is about.

        Requests are answered in the order sent, so a line that was not understood
        is the oldest one that has no answer; anything else is about the connection
        and its last line.
        """
        with self._mu:
            if self._pending and error["code"] in (_PARSE_ERROR, _INVALID_REQUEST):
                return min(self._pending)
        self._reason = str(_refusal(error))
        return None

    def _finish(self, why: str) -> None:
        # Its output is over, so it is of no use.
        by_itself = self.stop(1)
        code = self._process.returncode
        self._errors.join(2)
        with self._mu:
            stderr = self._stderr.decode("utf-8", "replace").strip()
            why = why or self._reason
            if not why and not by_itself:
                why = "the server closed its output"
            if not why:
                why = f"the server ended with status {code}" if code >= 0 else f"the server was ended by signal {-code}"
            if stderr:
                why += f"\n{stderr}"
            self._over = self.closed or ServerDied(why, code, stderr)
            pending, self._pending = self._pending, {}
            over = self._over
        for _, f, _ in pending.values():
            settle(f, error=over)
        self._ended(over)


def _refusal(error: dict[str, Any]) -> RequestRefused:
    data = error.get("data", {})
    return RequestRefused(data.get("code") or _NAMES.get(error["code"], ""), error["message"], data.get("path", ""))


def _encode(line: dict[str, Any]) -> bytes:
    try:
        return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which only an escape can hold
        return json.dumps(line, separators=(",", ":")).encode()


#: errors of lines that are no requests
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600

_NAMES = {_PARSE_ERROR: "PARSE_ERROR", _INVALID_REQUEST: "INVALID_REQUEST", -32601: "METHOD_NOT_FOUND", -32602: "INVALID_PARAMS", -32603: "INTERNAL"}

