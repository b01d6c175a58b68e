import asyncio
import dataclasses
import json
import threading
import time
import unittest

from box import Box, calls
from deepseek import (
    Answer, AsyncClient, Client, ClientClosed, HandlerFailed, RequestRefused, RequestTimeout, RunInProgress, RunTimeout, ServerDied, ServerNotFound,
)
from deepseek._questions import on_wire

# Answers the second request when it may, and notes what comes behind it.
SLOW = """
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; until [ -e "$0/go" ]; do sleep 0.02; done; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}'
read -r l; echo "$l" >"$0/third"; echo '{"jsonrpc":"2.0","method":"session.status","params":{"sessionId":"s","status":"idle"}}'
cat >/dev/null"""


class Case(unittest.TestCase):
    def setUp(self):
        self.box = Box()
        self.addCleanup(self.box.remove)

    def test_run_and_go_on(self):
        with Client(**self.box.options("plain.yaml")) as c:
            one = c.run("go")
            self.assertEqual((one.final_response, one.finish_reason, one.steps, one.questions), ("first", "completed", 1, []))
            two = c.run("go on", session_id=one.session_id)
            self.assertEqual((two.final_response, two.session_id), ("second", one.session_id))
            self.assertGreater(two.events[0]["seq"], one.events[-1]["seq"])
            seqs = [e["seq"] for e in c.read(one.session_id)]
            self.assertEqual(seqs, list(range(len(seqs))))
            self.assertEqual([s["id"] for s in c.sessions()], [one.session_id])
            with Client(**self.box.options("plain.yaml")) as other:
                with self.assertRaises(RequestRefused) as refused:
                    other.run("x", session_id=one.session_id)
                self.assertEqual(refused.exception.code, "SESSION_BUSY")
                c.close_session(one.session_id)
                third = other.run("more", session_id=one.session_id)
                self.assertEqual((third.finish_reason, third.error["code"]), ("error", "SCRIPT_EXHAUSTED"))
        with self.assertRaises(ClientClosed):
            c.run("x")

    def test_handler_answers(self):
        asked = []

        def handler(q):
            asked.append(q)
            return [Answer("port", ["9090"])]

        with Client(**self.box.options("asked.yaml", on_question=handler)) as c:
            r = c.run("go")
        self.assertEqual((r.final_response, r.questions), ("answered", []))
        self.assertEqual((asked[0].kind, asked[0].timed, asked[0].questions[0].options[1].label), ("question", True, "9090"))
        self.assertTrue(0 < asked[0].remaining <= 600)

    def test_answers_may_be_plain_dicts(self):
        with Client(**self.box.options("asked.yaml", on_question=lambda q: [{"id": q.questions[0].id, "selected": ["9090"]}])) as c:
            r = c.run("go")
        self.assertEqual((r.final_response, r.questions), ("answered", []))
        self.assertIn("9090", next(str(e["data"]) for e in r.events if e["type"] == "tool/result"))

    def test_a_dict_has_the_members_of_an_answer(self):
        for answer in (Answer("port", custom="3000"), {"id": "port", "custom": "3000"}):
            self.assertEqual(on_wire([answer]), [{"id": "port", "selected": [], "custom": "3000"}])
        self.assertEqual(on_wire([dataclasses.asdict(Answer("port", ["9090"]))]), [{"id": "port", "selected": ["9090"]}])
        for wrong in ("hello", {"id": "port"}, ["hello"]):
            with self.assertRaises(TypeError):
                on_wire(wrong)

    def test_answer_behind_its_time_is_a_late_one(self):
        waiting = threading.Event()

        def handler(_):
            waiting.wait(120)
            return [Answer("port", ["8080"])]

        with Client(**self.box.options("asking.yaml", on_question=handler)) as c, c.events() as told:

            def follow():
                for n in told:
                    if calls(n, "wait1"):
                        waiting.set()
                    if n.event and n.event["type"] == "agent/inbox/spliced" and "answer_to_pending" in str(n.event):
                        self.box.release()

            t = threading.Thread(target=follow)
            t.start()
            r = c.run("go")
            told.close()
            t.join()
        self.assertEqual((r.final_response, r.questions), ("answered", []))
        self.assertIn("user-question-reply", str(r.events))

    def test_handler_that_fails_leaves_the_question(self):
        def raises(_):
            raise KeyError("oh")

        self.box.release()
        with Client(**self.box.options("asking.yaml", on_question=raises)) as c:
            with self.assertRaises(HandlerFailed) as failed:
                c.run("go")
        r = failed.exception.result
        self.assertIsInstance(failed.exception.__cause__, KeyError)
        self.assertEqual([(q.call_id, q.state) for q in r.questions], [("ask1", "continued")])
        self.assertEqual(r.questions[0].answer, f"deepseek answer {r.session_id} ask1")

    def test_one_run_of_a_session_at_a_time(self):
        with Client(**self.box.options("waiting.yaml")) as c, c.events() as told:
            results = []
            t = threading.Thread(target=lambda: results.append(c.run("go")))
            t.start()
            n = next(n for n in told if calls(n, "wait1"))
            with self.assertRaises(RunInProgress):
                c.run("x", session_id=n.session_id)
            self.box.release()
            t.join()
            self.assertEqual(results[0].final_response, "late")

    def test_timeout_cancels(self):
        with Client(**self.box.options("second.yaml")) as c:
            session_id = c.run("first").session_id
            with c.events(session_id) as told:
                with self.assertRaises(RunTimeout) as late:
                    c.run("go", session_id=session_id, timeout=1)
                self.assertEqual(late.exception.session_id, session_id)
                for n in told:  # the command would wait for ever
                    if n.params.get("status") == "idle":
                        break
            # A machine may be so slow that the turn has not begun.
            ends = [e["data"]["reason"]["kind"] for e in c.read(session_id) if e["type"] == "turn/end"]
            self.assertIn(ends, (["completed", "aborted"], ["completed"]))
            self.box.release()
            self.assertEqual(c.run("go on", session_id=session_id).final_response, "late")

    def test_timeout_cancels_though_the_prompt_is_not_answered_yet(self):
        with Client(command=["sh", "-c", SLOW, str(self.box.ws)]) as c, c.events("s") as told:
            with self.assertRaises(RunTimeout):
                c.run("go", timeout=0)
            self.box.release()
            next(told)
        third = json.loads((self.box.ws / "third").read_text())
        self.assertEqual((third["method"], third["params"]), ("session/cancel", {"sessionId": "s", "keepInbox": True}))

    def test_servers_that_are_not_there_or_end(self):
        with self.assertRaises(ServerNotFound):
            Client(command=[str(self.box.ws / "nothing")]).start()
        for command, want in [("exit 3", "status 3"), ("echo no key >&2; exit 1", "no key"), ("echo hi", "not understood"), ("kill -9 $$", "signal 9")]:
            with self.assertRaises(ServerDied) as died:
                Client(command=["sh", "-c", command]).start()
            self.assertIn(want, str(died.exception))
        with self.assertRaises(RequestTimeout):
            Client(command=["sleep", "1000"], request_timeout=0.1).start()
        with self.assertRaises(RequestRefused) as refused:
            Client(**{**self.box.options("plain.yaml"), "mode": "legacy", "timeout": 5}).start()
        self.assertEqual((refused.exception.code, refused.exception.path), ("INVALID_PARAMS", "timeout"))

    def test_nothing_is_left_behind(self):
        before = threading.active_count()
        c = Client(**self.box.options("waiting.yaml")).start()
        told = c.events()
        failures = []

        def run():
            try:
                c.run("go")
            except ClientClosed as err:
                failures.append(err)

        t = threading.Thread(target=run)
        t.start()
        for n in told:
            if calls(n, "wait1"):
                break
        c.close()
        t.join()
        self.assertEqual(len(failures), 1)
        late = time.monotonic() + 60
        while threading.active_count() > before and time.monotonic() < late:
            time.sleep(0.01)
        self.assertEqual(threading.active_count(), before)

    def test_async(self):
        async def handler(q):
            await asyncio.sleep(0)
            return [Answer("port", ["9090"])]

        async def main():
            async with AsyncClient(**self.box.options("asked.yaml", on_question=handler)) as c:
                r = await c.run("go")
                self.assertEqual((r.final_response, r.questions), ("answered", []))
                self.assertEqual(len([e async for e in c.read(r.session_id)]), r.events[-1]["seq"] + 1)
                self.assertEqual(await c.questions(r.session_id), [])

        asyncio.run(main())

    def test_async_cancelled_task_cancels_the_run(self):
        async def main():
            async with AsyncClient(**self.box.options("waiting.yaml")) as c:
                told = c.events()
                task = asyncio.create_task(c.run("go"))
                async for n in told:
                    if calls(n, "wait1"):
                        task.cancel()
                    if n.event and n.event["type"] == "turn/end":
                        self.assertEqual(n.event["data"]["reason"]["kind"], "aborted")
                        break
                await told.aclose()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
