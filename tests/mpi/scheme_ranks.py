"""One rank of several that check schemes: ``mpiexec -n N python -m tests.mpi.scheme_ranks FOLDER`` (case_loop.py)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from deep500.distributed.communicator import Communicator
from deep500.distributed.launch_environment import create_communicator
from deep500.networks.graph_executor import GraphExecutor
from tests.conformance import scheme_oracles
from tests.mpi.case_loop import RankFailedError, run_cases
from tests.mpi.scheme_cases import CASES

Result = TypeVar("Result")

#: A rank that waits for another looks so often, and leaves the processor to it in between.
PAUSE_S = 0.001


class MPIRanks:
    """Each process of MPI is a rank: all do the same, and tell each other what came of it."""

    def __init__(self, communicator: Communicator) -> None:
        from mpi4py import MPI

        self._communicator = communicator
        self._results = MPI.COMM_WORLD.Dup()  # so that no message of the schemes is taken for a result

    def run(
        self,
        count: int,
        make: Callable[[], GraphExecutor],
        work: Callable[[Communicator, GraphExecutor], Result],
    ) -> list[Result]:
        assert count == self._communicator.size
        try:
            result = work(self._communicator, make())
        except BaseException as error:
            raise RankFailedError from error
        self._meet()
        found: list[Result] = self._results.allgather(result)
        return found

    def once(self, compute: Callable[[], Result]) -> Result:
        outcome: Any = None
        if self._results.rank == 0:
            try:
                outcome = (True, compute())
            except AssertionError as error:
                outcome = (False, repr(error))
        self._meet()
        is_done, value = self._results.bcast(outcome)
        assert is_done, value
        result: Result = value
        return result

    def _meet(self) -> None:
        request = self._results.Ibarrier()
        while not request.Test():
            time.sleep(PAUSE_S)


def main() -> None:
    communicator = create_communicator("mpi")
    scheme_oracles.use(MPIRanks(communicator))
    run_cases(Path(sys.argv[1]), communicator.rank, {name: case.run for name, case in CASES.items()})


if __name__ == "__main__":
    main()
