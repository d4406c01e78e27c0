"""What a rank does that is started for several cases: it does one after the other, and writes down what came of them.

A folder is given as the first argument. FOLDER/cases has the names of the cases, one a line. Each rank writes into
FOLDER/rank.RANK: a line of JSON when it begins a case, and one when it has ended it, with what was wrong.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path


class RankFailedError(Exception):
    """Something failed on this rank alone: the others may be anywhere."""


def run_cases(folder: Path, rank: int, cases: Mapping[str, Callable[[], object]]) -> None:
    """Run the cases that the folder names. A case that fails must do so on all ranks, or raise ``RankFailedError``."""
    with (folder / f"rank.{rank}").open("a", buffering=1) as report:
        for name in (folder / "cases").read_text().split():
            report.write(json.dumps({"case": name, "state": "begun"}) + "\n")
            start, why = time.monotonic(), ""
            try:
                cases[name]()
            except RankFailedError:
                report.write(json.dumps({"case": name, "state": "failed", "why": traceback.format_exc()}) + "\n")
                raise  # which ends the other ranks
            except BaseException:  # noqa: BLE001 - pytest's own are no Exceptions
                why = traceback.format_exc()
            seconds = time.monotonic() - start
            state = "failed" if why else "passed"
            report.write(json.dumps({"case": name, "state": state, "why": why, "seconds": seconds}) + "\n")
