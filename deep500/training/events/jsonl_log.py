"""A log as a JSON object a line."""

from __future__ import annotations

import json
import math
from os import PathLike
from typing import Any

from deep500.training.events._log import LogEvent
from deep500.training.events._recording import Row

__all__ = ["JSONLLogEvent"]


class JSONLLogEvent(LogEvent):
    """Writes a file of JSON lines: an object for each step, test and epoch, or for each test and epoch.

    ``kind`` is ``"step"``, ``"test"`` or ``"epoch"``; the other names are those of :class:`CSVLogEvent`. JSON has no
    infinities and no NaN; a loss that is one is the text ``"inf"``, ``"-inf"`` or ``"nan"``, which Python's ``float``
    reads.

    A training that goes on from a checkpoint cuts the file to the lines that it had then and appends. Lines are written
    in blocks, at the latest every two seconds, before each checkpoint and in the end.

    Source: https://jsonlines.org.
    """

    what = "JSONL log"

    def __init__(self, path: str | PathLike[str], every: str = "step", every_steps: int = 1) -> None:
        """Set where to, and what has a line; see :class:`LogEvent`.

        Args:
            path: The file.
            every: ``"step"``, or ``"epoch"`` for no lines of steps.
            every_steps: Number of steps between two lines of steps.
        """
        super().__init__(path, every, every_steps)

    def _lines(self, kind: str, rows: list[Row]) -> str:
        objects = [{"kind": kind, **{name: _number(value) for name, value in row.items()}} for row in rows]
        return "".join(json.dumps(one, allow_nan=False) + "\n" for one in objects)


def _number(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
