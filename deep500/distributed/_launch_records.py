"""What ranks leave for their launcher: that they have come to their end, or why they have not."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER_VARIABLE", "ON_FAILURE_VARIABLE", "RECORD_MARK", "RankRecord", "Records", "record_of_line"]

#: Names the launcher's folder to the ranks.
FOLDER_VARIABLE = "DEEP500_RANK_FOLDER"

#: Tells the ranks what is done when one of them fails.
ON_FAILURE_VARIABLE = "DEEP500_RANK_ON_FAILURE"

#: Begins a line that is a record: a rank on a machine that does not see the folder sends it with its output.
RECORD_MARK = "\x1edeep500 rank record "


@dataclass(frozen=True)
class RankRecord:
    """The last word of a rank.

    Attributes:
        rank: Its number.
        finished: Whether it came to the end of its program.
        code: The exit code that it would have by itself.
        error: Kind of the error that ended it.
        message: Why it failed, in one line; empty where nothing is to be said.
        text: The traceback, where the failure is not a mistake that one line explains.
    """

    rank: int
    finished: bool
    code: int
    error: str = ""
    message: str = ""
    text: str = ""

    @property
    def is_of_exchange(self) -> bool:
        """Whether the rank failed because of what others did, or did not."""
        return not self.finished and self.error == "CommunicationError"

    def line(self) -> str:
        """Return the record as a line of output."""
        return f"{RECORD_MARK}{json.dumps(dataclasses.asdict(self))}\n"


def record_of_line(line: str) -> RankRecord | None:
    """Return the record that a line of output holds, or ``None`` for any other line."""
    if not line.startswith(RECORD_MARK):
        return None
    try:
        return _record(json.loads(line[len(RECORD_MARK) :]))
    except (ValueError, TypeError):
        return None


class Records:
    """Records in a folder, a file each; the first of its kind of a rank counts."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which is there."""
        self._folder = folder
        self._failed: dict[int, RankRecord] = {}
        self._finished: dict[int, RankRecord] = {}
        self._seen: set[str] = set()

    def write(self, record: RankRecord) -> bool:
        """Write a record, and return whether that could be done."""
        state = "finished" if record.finished else "failed"
        partial = self._folder / f".{state}.{record.rank}.{os.getpid()}"
        with contextlib.suppress(OSError):
            partial.write_text(json.dumps(dataclasses.asdict(record)))
            os.replace(partial, self._folder / f"{state}.{record.rank}.json")
            return True
        return False

    def read(self) -> None:
        """Take note of the files that are new."""
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(self._folder)):
                if name.endswith(".json") and name not in self._seen:
                    self._seen.add(name)
                    self.add(_record(json.loads((self._folder / name).read_text())))

    def add(self, record: RankRecord) -> None:
        """Take note of a record."""
        (self._finished if record.finished else self._failed).setdefault(record.rank, record)

    @property
    def failed(self) -> dict[int, RankRecord]:
        """The records of ranks that failed, in the order in which they were seen."""
        return self._failed

    @property
    def finished(self) -> dict[int, RankRecord]:
        """The records of ranks that came to their end and had not failed before."""
        return {rank: record for rank, record in self._finished.items() if rank not in self._failed}

    def ended(self, rank: int) -> bool:
        """Return whether a rank has left its last word."""
        return rank in self._failed or rank in self._finished


def _record(content: Mapping[str, Any]) -> RankRecord:
    return RankRecord(**content)
