"""One rank of several that meets with an accident: ``mpiexec -n 3 python -m tests.mpi.faults KIND [TIMEOUT]``.

Rank 1 has the accident at its third exchange; the others would go on for ever. A rank that comes to its end says so.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np

from deep500.distributed.communicator import Communicator
from deep500.distributed.launch_environment import create_communicator

AFFECTED = 1


def accident(kind: str, communicator: Communicator) -> None:
    if kind == "exception":
        raise ValueError("planted on purpose")
    if kind == "exception in a thread":
        thread = threading.Thread(target=lambda: accident("exception", communicator), name="helper")
        thread.start()
        time.sleep(60)
    if kind in ("sys.exit(0)", "sys.exit(3)"):
        sys.exit(int(kind[-2]))
    if kind == "sys.exit before split":
        sys.exit(0)
    if kind == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind in ("SIGSTOP", "SIGSTOP, large", "SIGSTOP before split"):
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "SIGSTOP in allreduce":
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGSTOP]).start()
    if kind == "os._exit(0)":
        os._exit(0)
    if kind == "abort":
        communicator.abort("The data set is gone.")
    if kind == "other length":
        communicator.allreduce(np.ones(8))
    if kind == "leaves a receiver":
        communicator.recv(np.ones(1), 2, 5)


def main() -> None:
    kind = sys.argv[1]
    communicator = create_communicator(timeout_s=float(sys.argv[2]) if len(sys.argv) > 2 else None)
    length = 1_000_000 if kind in ("SIGSTOP, large", "SIGSTOP in allreduce") else 1000
    for step in range(100_000_000):
        communicator.allreduce(np.ones(length, np.float32))
        if kind == "none" and step == 3:
            break
        if step == 3 and communicator.rank == AFFECTED:
            accident(kind, communicator)
        if step == 3 and kind == "leaves a receiver" and communicator.rank == 2:
            break
        if step == 3 and kind in ("SIGSTOP before split", "sys.exit before split"):
            communicator.split(0)
        if step == 3 and kind == "reduce, then slow root":
            slow_root(communicator)
            break
        if step == 3 and kind == "all exit":
            sys.exit(4)
    sys.stdout.write(f"rank {communicator.rank} finished\n")


def slow_root(communicator: Communicator) -> None:
    """End ranks early that have done their part: nothing is wrong with that."""
    if communicator.rank == 2:
        time.sleep(4)
    communicator.reduce(np.ones(10), root=0)


if __name__ == "__main__":
    main()
