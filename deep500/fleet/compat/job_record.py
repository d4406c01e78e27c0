"""How far a job has come: a small file that is replaced whole at every step.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

__all__ = ["RECORD_FILE", "STAGES", "JobRecord", "utc_s"]

RECORD_FILE = "record.json"

#: What a job does, in order; each needs those before it.
STAGES = ("matched", "environment", "import", "device_count", "kernel", "collective", "recipe")


def utc_s() -> float:
    """Return the seconds since 1970 (UTC)."""
    return datetime.now(timezone.utc).timestamp()


class JobRecord:
    """The record of one job.

    Two processes write it, one after the other: the job until its environment stands and after its probe has ended,
    the probe in between.

    Attributes:
        content: What ``record.json`` holds.
    """

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        """Take a record; nothing is written yet."""
        self.path = folder / RECORD_FILE
        self.content = content

    @classmethod
    def new(cls, folder: Path, cell_id: str, attempt: int) -> JobRecord:
        """Begin a record."""
        content: dict[str, Any] = {
            "cell": cell_id,
            "attempt": attempt,
            "host": socket.gethostname(),
            "stages": {},
            "facts": {},
            "error": None,
            "finished": False,
        }
        return cls(folder, content)

    @classmethod
    def load(cls, folder: Path) -> JobRecord:
        """Return the record that was written to a folder."""
        return cls(folder, json.loads((folder / RECORD_FILE).read_text(encoding="utf-8")))

    @property
    def stage(self) -> str:
        """The stage that was begun last; the first before any was."""
        begun = [stage for stage in STAGES if stage in self.content["stages"]]
        return begun[-1] if begun else STAGES[0]

    def begin(self, stage: str) -> None:
        """Write that a stage begins."""
        self.content["stages"][stage] = {"started": utc_s(), "ended": None, "ok": None, "detail": ""}
        self.write()

    def end(self, detail: str = "", **facts: Any) -> None:
        """Write that the stage went well.

        Args:
            detail: What it found, in one line; it begins with ``skipped:`` when there was nothing to do it with.
            **facts: What it found, for programs.
        """
        self.content["stages"][self.stage].update(ended=utc_s(), ok=True, detail=_one_line(detail))
        self.content["facts"].update(facts)
        self.write()

    def fail(self, kind: str, message: str) -> None:
        """Write that the stage that was begun last failed.

        Args:
            kind: The type of the error; ``Timeout``, ``Terminated`` and ``Died`` say how the process ended.
            message: What was wrong.
        """
        stage = self.content["stages"].setdefault(self.stage, {"started": utc_s()})
        stage.update(ended=utc_s(), ok=False, detail=_one_line(message))
        self.content["error"] = {"stage": self.stage, "type": kind, "message": _one_line(message)}
        self.write()

    def finish(self) -> None:
        """Write that nothing more will come."""
        self.content["finished"] = True
        self.write()

    def write(self) -> None:
        """Replace the file: whoever reads it finds the old one or the new one, never a part."""
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".record.", suffix=".partial")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self.content, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise


def _one_line(text: str) -> str:
    """Return a text as one line of at most 2,000 characters, from which a terminal takes no orders."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
    return line if len(line) <= 2000 else f"{line[:1000]} [...] {line[-990:]}"
