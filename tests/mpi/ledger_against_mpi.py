"""The ledger against what MPI itself is given: ``LD_PRELOAD=LIBRARY mpiexec -n 3 python -m ... LIBRARY [TIMEOUT]``.

LIBRARY is built from pmpi_bytes.c and counts the bytes of MPI's calls.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from deep500.distributed.communicator import Communicator
from deep500.distributed.launch_environment import create_communicator

#: Operations in the order of the library's enumeration.
OPERATIONS = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter", "send")


def calls(communicator: Communicator) -> dict[str, list[tuple[str, Callable[[], object], int]]]:
    """Return calls by operation of MPI: the ledger's name, the call, and bytes that MPI moves for one of payload."""
    size, rank = communicator.size, communicator.rank
    large, small = np.ones(300_007, np.float32), np.ones(11)
    right, left = (rank + 1) % size, (rank - 1) % size
    return {
        "allreduce": [
            ("allreduce", lambda: communicator.allreduce(large), 1),
            ("allreduce", lambda: communicator.iallreduce(large, "mean").wait(), 1),
            ("allreduce", lambda: communicator.allreduce(small), 1),
            ("allreduce", lambda: communicator.allreduce(large.astype(np.float16)), 2),
        ],
        "broadcast": [
            ("broadcast", lambda: communicator.broadcast(large, 1), 1),
            ("broadcast", lambda: communicator.broadcast(large.astype(np.float16), 1), 1),
        ],
        "reduce": [("reduce", lambda: communicator.reduce(large, 2), 1)],
        "allgather": [("allgather", lambda: communicator.allgather(small, np.empty(11 * size)), 1)],
        "reduce_scatter": [
            ("reduce_scatter", lambda: communicator.reduce_scatter(np.ones(11 * size), small), 1),
        ],
        "send": [("isendrecv", lambda: communicator.isendrecv(large, right, large.copy(), left).wait(), 1)],
    }


def main() -> None:
    counter = ctypes.CDLL(sys.argv[1]).pmpi_bytes
    counter.restype = ctypes.c_longlong
    timeout_s = float(sys.argv[2]) if len(sys.argv) > 2 else None
    communicator = create_communicator("mpi", timeout_s=timeout_s)
    assert communicator.size == 3
    communicator.allreduce(np.ones(300_007))  # measures which calls are faster
    for index, operation in enumerate(OPERATIONS):
        for name, call, factor in calls(communicator)[operation]:
            before, counted = communicator.ledger.snapshot(), counter(index)
            call()
            payload = (communicator.ledger.snapshot() - before)[name].payload_bytes
            seen = counter(index) - counted
            assert payload > 0
            assert seen == factor * payload, f"{name}: MPI was given {seen} bytes, the ledger says {payload}"
    sys.stdout.write("all bytes agree\n")


if __name__ == "__main__":
    main()
