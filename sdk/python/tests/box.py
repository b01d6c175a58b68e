"""A home and a folder to work in, and the server under test: $DEEPSEEK, else deepseek."""

import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

SCRIPTS = HERE.parent.parent / "testdata"


class Box:
    def __init__(self) -> None:
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sdk")).resolve()
        self.home, self.ws = self.dir / "home", self.dir / "ws"
        self.home.mkdir()
        self.ws.mkdir()

    def options(self, script: str, **more):
        env = {"HOME": str(self.home), "TMPDIR": str(self.dir), "DEEPSEEK_HOME": "", "XDG_RUNTIME_DIR": "", "DEEPSEEK_API_KEY": ""}
        return {
            "command": [os.environ.get("DEEPSEEK", "deepseek"), "rpc"], "cwd": str(self.ws), "env": env, "mode": "timed",
            "model": f"script:{SCRIPTS / script}", "permission": "full-access", **more,
        }

    def release(self) -> None:
        """Ends the command that waits for it."""
        (self.ws / "go").touch()

    def remove(self) -> None:
        shutil.rmtree(self.dir, ignore_errors=True)


def calls(note, call_id: str) -> bool:
    """Whether a notification is of the call of a tool."""
    e = note.event
    return e is not None and e["type"] == "tool/call" and e["data"]["callId"] == call_id
