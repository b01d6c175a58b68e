"""Performs the run of testdata/steered.yaml in the folder given and prints its result as JSON, for comparison.

Usage: steered.py sync|async FOLDER
"""

import asyncio
import dataclasses
import json
import os
import pathlib
import sys
import threading

from box import SCRIPTS, calls
from deepseek import Answer, AsyncClient, Client


def main() -> None:
    way, folder = sys.argv[1:]
    options = {
        "command": [os.environ.get("DEEPSEEK", "deepseek"), "rpc"], "cwd": folder, "mode": "timed",
        "model": f"script:{SCRIPTS / 'steered.yaml'}", "permission": "full-access",
    }
    go = pathlib.Path(folder) / "go"
    result = sync(options, go) if way == "sync" else asyncio.run(asynchronous(options, go))
    print(json.dumps(dataclasses.asdict(result)))


def sync(options, go):
    with Client(**options) as c:
        told = c.events()

        def join():
            for n in told:
                if calls(n, "wait1"):
                    c.steer(n.session_id, "also the docs")
                    assert c.answer(n.session_id, "ask1", [Answer("port", ["9090"])])
                    go.touch()

        t = threading.Thread(target=join)
        t.start()
        try:
            return c.run("port the server")
        finally:
            told.close()
            t.join()


async def asynchronous(options, go):
    async with AsyncClient(**options) as c:
        told = c.events()

        async def join():
            async for n in told:
                if calls(n, "wait1"):
                    await c.steer(n.session_id, "also the docs")
                    assert await c.answer(n.session_id, "ask1", [Answer("port", ["9090"])])
                    go.touch()

        t = asyncio.create_task(join())
        try:
            return await c.run("port the server")
        finally:
            t.cancel()


main()
