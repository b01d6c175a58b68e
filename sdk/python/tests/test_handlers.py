import asyncio
import sys
import unittest

from box import Box
from deepseek import Answer, AsyncClient, Client, HandlerFailed, RequestRefused

# Answers the second request with an error that names none.
UNNAMED = """
read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read l; echo '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}'
read l; echo '{"jsonrpc":"2.0","id":3,"result":{"sessions":[]}}'
cat >/dev/null"""

# Answers the second request with the length of its line in bytes.
MEASURED = """
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
n=$(head -n 1 | wc -c); echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"'$((n-1))'","messageId":"m"}}'
cat >/dev/null"""


def raises(_):
    raise KeyError("oh")


# The ways in which a handler does not answer.
FAILING = {
    "error": raises,
    "exit": lambda _: sys.exit(3),
    "label": lambda q: [Answer(q.questions[0].id, ["maybe"])],
    "type": lambda _: "hello",
    "empty": lambda _: [],
    "no JSON": lambda q: [Answer(q.questions[0].id, custom=b"x")],
    "a set": lambda q: [{"id": q.questions[0].id, "selected": {"9090"}}],
}


class Handlers(unittest.TestCase):
    """What a failing handler leaves would wait for ever."""

    def box(self):
        b = Box()
        self.addCleanup(b.remove)
        return b

    def test_approval_whose_handler_fails_is_denied(self):
        def fails(handler):
            with Client(**self.box().options("approval.yaml", permission="workspace-write", on_approval=handler)) as c:
                with self.assertRaises(HandlerFailed) as failed:
                    c.run("go", timeout=120)
                return failed.exception.result

        for name in ("error", "exit", "label", "type", "no JSON"):
            with self.subTest(name):
                r = fails(FAILING[name])
                self.assertEqual((r.denied, r.final_response), (1, "after"))

    def test_no_answer_to_an_approval_is_a_no(self):
        options = self.box().options("approval.yaml", permission="workspace-write", on_approval=lambda _: None)
        with Client(**options) as c:
            r = c.run("go", timeout=120)
        self.assertEqual((r.denied, r.final_response), (1, "after"))

    def test_question_without_a_time_whose_handler_fails_is_closed(self):
        for name, mode in (("label", {"mode": "legacy"}), ("error", {"timeout": -1}), ("a set", {"mode": "legacy"})):
            with self.subTest(name, **mode), Client(**self.box().options("untimed.yaml", on_question=FAILING[name], **mode)) as c:
                with self.assertRaises(HandlerFailed) as failed:
                    c.run("go", timeout=120)
                r = failed.exception.result
                self.assertEqual((r.finish_reason, r.final_response), ("completed", "after"))

    def test_async_handler_that_fails(self):
        async def handler(_):
            await asyncio.sleep(0)
            raise KeyError("oh")

        async def main():
            options = self.box().options("approval.yaml", permission="workspace-write", on_approval=handler)
            async with AsyncClient(**options) as c:
                with self.assertRaises(HandlerFailed) as failed:
                    await c.run("go", timeout=120)
                self.assertIsInstance(failed.exception.__cause__, KeyError)
                self.assertEqual(failed.exception.result.denied, 1)

        asyncio.run(main())

    def test_empty_list_of_answers_is_a_bad_answer(self):
        b = self.box()
        b.release()
        with Client(**b.options("asking.yaml", on_question=FAILING["empty"])) as c:
            with self.assertRaises(HandlerFailed) as failed:
                c.run("go")
        cause = failed.exception.__cause__
        self.assertEqual(cause.code, "BAD_ANSWER")
        self.assertIn('question "port" is not answered', str(cause))

    def test_request_that_is_too_long_is_refused(self):
        with Client(**self.box().options("plain.yaml")) as c:
            with self.assertRaises(RequestRefused) as refused:
                c.run("\x01" * (11 << 20), timeout=120)  # what counts is the line: six bytes for each
            self.assertEqual(refused.exception.code, "INVALID_REQUEST")
            self.assertIn("67108864", str(refused.exception))
            self.assertEqual(c.run("go").final_response, "first")

    def test_message_costs_what_it_is(self):
        for text, costs in (("<é中😀>" * 10, 110), ("\ud800", 6)):
            with Client(command=["sh", "-c", MEASURED]) as c:
                size, _ = c.prompt(text)
            rest = len('{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":""}]}}')
            self.assertEqual(int(size), rest + costs)

    def test_error_without_an_id_fails_the_request_in_hand(self):
        with Client(command=["sh", "-c", UNNAMED], request_timeout=120) as c:
            with self.assertRaises(RequestRefused) as refused:
                c.run("go", timeout=120)
            self.assertEqual((refused.exception.code, str(refused.exception)), ("INVALID_REQUEST", "INVALID_REQUEST: what?"))
            self.assertEqual(c.sessions(), [])


if __name__ == "__main__":
    unittest.main()
