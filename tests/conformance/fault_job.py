"""A training on several ranks of which one meets with an accident: ``fault_job.py KIND FOLDER [TIMEOUT]``.

A script of a user's, as it were: nothing in it guards against faults. Each rank writes its process and those that it
has started to a file of the folder, so that a test sees what is left of them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.launch_environment import create_communicator, detect
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.distributed.support import RankExecutor, batch

AFFECTED, ACCIDENT_STEP, STEPS = 1, 3, 6


def accident(kind: str) -> None:
    """Meet with an accident; those that let the step go on are in ``main``."""
    match kind:
        case "exception":
            raise ValueError("planted on purpose")
        case "exception in a thread":
            thread = threading.Thread(target=accident, args=["exception"], name="helper")
            thread.start()
            thread.join()
            time.sleep(60)
        case "exception that Python ignores":
            _Ill()
        case "sys.exit(0)" | "sys.exit(3)":
            sys.exit(int(kind[-2]))
        case "sys.exit(text)":
            sys.exit("there is no more data")
        case "SIGKILL" | "SIGSTOP" | "SIGSEGV":
            os.kill(os.getpid(), getattr(signal, kind))
        case "os._exit(0)" | "os._exit(3)":
            os._exit(int(kind[-2]))


class _Ill:
    def __del__(self) -> None:
        raise ValueError("planted on purpose")


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    rank = detect().rank
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=[600], daemon=True)
    if kind == "SIGKILL, with a worker":
        worker.start()
    (folder / f"rank.{rank}").write_text(f"{os.getpid()} {worker.pid or ''}")
    is_affected = rank == AFFECTED
    if kind == "exception before MPI" and is_affected:
        raise ValueError("planted on purpose")
    if kind == "SIGSTOP before MPI" and is_affected:
        accident("SIGSTOP")
    communicator = create_communicator(timeout_s=float(sys.argv[3]) if len(sys.argv) > 3 else 60.0)
    periods = {"other scheme arguments": 2 + is_affected}
    optimizer = DistributedOptimizer(
        MomentumOptimizer(RankExecutor(), "loss", 0.1, 0.9), communicator, LocalSGD(periods.get(kind, 1))
    )
    steps = {"none": STEPS, "other data size": STEPS - 2 * is_affected}.get(kind, 10**9)
    for step in range(steps):
        if step == ACCIDENT_STEP and is_affected:
            accident(kind.partition(",")[0])
        optimizer.step(batch(step, 6))
        if step == 20 and kind == "exception that Python ignores":
            break
        if step == 20:
            (folder / f"trains.{rank}").touch()
    sys.stdout.write(f"rank {rank} has finished\n")


if __name__ == "__main__":
    main()
