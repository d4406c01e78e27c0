"""Cases of which some end or hang all ranks, for the test of what starts them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from deep500.distributed.launch_environment import create_communicator
from tests.mpi.case_loop import RankFailedError, run_cases


def _fail() -> NoReturn:
    raise AssertionError("planted on purpose")


def _end() -> NoReturn:
    raise RankFailedError("one rank fails")


ACCIDENTS: dict[str, Callable[[], object]] = {
    "first": lambda: None,
    "fails": _fail,
    "ends": _end,
    "second": lambda: None,
    "hangs": lambda: time.sleep(600),
    "third": lambda: None,
}

if __name__ == "__main__":
    run_cases(Path(sys.argv[1]), create_communicator("mpi").rank, ACCIDENTS)
