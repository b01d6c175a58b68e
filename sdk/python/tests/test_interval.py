import json
import unittest

from box import SCRIPTS
from deepseek import MalformedEvent, Usage
from deepseek._interval import Interval


class Intervals(unittest.TestCase):
    def test_shared_cases(self):
        for case in json.loads((SCRIPTS / "intervals.json").read_text()):
            with self.subTest(case["name"]):
                if case.get("malformed"):
                    self.assertRaises(MalformedEvent, self.folded, case["events"])
                    continue
                got, want = self.folded(case["events"]), case["result"]
                u = want["usage"]
                usage = Usage(u["inputTokens"], u["cacheReadTokens"], u["outputTokens"], u.get("reasoningTokens", 0), u.get("costUsd"))
                self.assertEqual(
                    (got.final_response, got.finish_reason, got.usage, got.steps, got.denied, got.events[0]["seq"], got.error),
                    (want["finalResponse"], want["finishReason"], usage, want["steps"], want["denied"], want["first"], want.get("error")),
                )

    def folded(self, events):
        i = Interval()
        for n, e in enumerate(events):
            if n == 1:  # the prompt is answered in the middle
                i.receipt("s", "m1")
            self.assertFalse(i.feed("event", e))
        self.assertFalse(i.feed("status", "running"))
        self.assertTrue(i.feed("status", "idle"))
        return i.result([])

    def test_idle_before_the_receipt_ends_nothing(self):
        i = Interval()
        i.receipt("s", "m1")
        self.assertFalse(i.feed("status", "idle"))


if __name__ == "__main__":
    unittest.main()
