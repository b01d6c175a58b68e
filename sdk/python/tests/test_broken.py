import json
import unittest
from concurrent.futures import ThreadPoolExecutor

from box import SCRIPTS
from deepseek import Client, MalformedEvent, ServerDied

# A server that does not keep the protocol. Its arguments are its answers to
# initialize and to a prompt, and what it says behind them; then it does what $END
# says and, if it goes on, neither reads nor ends by itself.
BROKEN = """
echo "last words" >&2
read -r l; printf '%s\\n' "$1"
read -r l; shift; printf '%s\\n' "$@"
eval "$END"
exec sleep 1000"""

INITIALIZED = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
RECEIPT = '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}'


def errors(case):
    """What a client hears of such a server: from a run without a timeout, and from what comes later."""
    lines = [case.get("initialize", INITIALIZED), case.get("prompt", RECEIPT), *case.get("behind", [])]
    heard = []
    try:
        with Client(command=["sh", "-c", BROKEN, "sh", *lines], env={"END": case.get("end", "")}, request_timeout=120) as c:
            told = c.events()
            for call in (lambda: c.run("go"), c.sessions, lambda: list(told)):
                try:
                    heard.append(call())
                except Exception as err:
                    heard.append(err)
    except Exception as err:
        heard.append(err)
    return heard


class Broken(unittest.TestCase):
    def test_shared_cases(self):
        cases = json.loads((SCRIPTS / "broken.json").read_text())
        with ThreadPoolExecutor(len(cases)) as pool:
            for case, heard in zip(cases, pool.map(errors, cases)):
                if "malformed" in case:
                    run = heard.pop(0)
                    self.assertIsInstance(run, MalformedEvent)
                    self.assertIn(case["malformed"], str(run))
                for err in heard:
                    with self.subTest(case["name"]):
                        self.assertIsInstance(err, ServerDied)
                        self.assertIn(case["error"], str(err))
                        self.assertEqual(err.stderr, "last words")


if __name__ == "__main__":
    unittest.main()
