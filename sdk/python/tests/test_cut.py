import asyncio
import unittest

from box import Box
from deepseek import AsyncClient, Client, RunTimeout


def raises(_):
    raise KeyError("oh")


class CutShort(unittest.TestCase):
    """A run that is cut short tells of its handler. On a slow machine that takes seconds to fail."""

    def options(self):
        b = Box()
        self.addCleanup(b.remove)
        return b.options("closed.yaml", on_question=raises, timeout=-1)

    def told(self, late):
        self.assertIsInstance(late.exception.__cause__, KeyError)
        self.assertIn("oh", str(late.exception))

    def test_sync(self):
        with Client(**self.options()) as c:
            with self.assertRaises(RunTimeout) as late:
                c.run("go", timeout=10)
        self.told(late)

    def test_async(self):
        async def main():
            async with AsyncClient(**self.options()) as c:
                with self.assertRaises(RunTimeout) as late:
                    await c.run("go", timeout=10)
            self.told(late)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
