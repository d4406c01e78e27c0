"""One rank of torch.distributed: ``python -m tests.conformance.torch_ranks KIND REPORT [TIMEOUT]``.

Started by torchrun, or by hand with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The kind ``checks`` runs the suite
of all communicators twice: with host buffers, and in the form that buffers on a GPU have, on the processor. The other
kinds are accidents of rank 1 at its third exchange. Each rank writes what it saw into REPORT.RANK.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deep500.core.errors import CommunicationError
from deep500.distributed.buffers import host_view
from deep500.distributed.launch_environment import create_communicator
from deep500.frameworks.pytorch._device_array import device_view
from deep500.frameworks.pytorch.communicator import TorchDistributedCommunicator
from tests.mpi.communicator_checks import CHECKS

AFFECTED = 1

#: Checks in which buffers are refused name the reasons of host buffers.
HOST_ONLY = {"refused_buffers", "framework_tensors"}


class DeviceForm(TorchDistributedCommunicator):
    """Sees buffers as it sees those on a GPU."""

    def _view(self, buffer: Any) -> Any:
        array = host_view(buffer)
        if array.dtype.name == "bfloat16":
            return device_view(torch.from_numpy(array.view(np.int16)).view(torch.bfloat16), torch.device("cpu"))
        return device_view(torch.from_numpy(array), torch.device("cpu"))


def run_checks(report: dict[str, Any], timeout_s: float | None) -> None:
    communicator = create_communicator(timeout_s=timeout_s)
    report["kind"] = type(communicator).__name__
    report["local_rank"] = communicator.local_rank
    for form, ranks in (("host", communicator), ("device", DeviceForm(timeout_s=timeout_s))):
        for name, check in CHECKS.items():
            if form == "host" or name not in HOST_ONLY:
                report["now"] = f"{form} {name}"
                check(ranks)
                report["done"].append(report["now"])
    check_messages_of_another_size(communicator)


def check_messages_of_another_size(communicator: Any) -> None:
    """A message of another size than the receiver's is not taken for it; the right one is, whichever comes first."""
    if communicator.rank == 0:
        works = [communicator.isend(np.full(length, float(length)), 1, 3) for length in (6, 5)]
        communicator.barrier()
        for work in works:
            work.wait()
    elif communicator.rank == 1:
        buffers = np.zeros(5), np.zeros(6)
        for buffer in buffers:
            communicator.recv(buffer, 0, 3)
        assert buffers[0][0] == 5
        assert buffers[1][0] == 6
        communicator.barrier()
    else:
        communicator.barrier()


def meet_accident(kind: str, report: dict[str, Any], timeout_s: float | None) -> None:
    communicator = TorchDistributedCommunicator(timeout_s=timeout_s)
    buffer = np.ones(100_000, np.float32)
    for step in range(1000):
        if step == 3 and communicator.rank == AFFECTED:
            if kind == "abort":
                communicator.abort("The data set is gone.")
            if kind == "sys.exit":
                sys.exit(0)
            os.kill(os.getpid(), signal.SIGKILL if kind == "SIGKILL" else signal.SIGSTOP)
        start = time.monotonic()
        try:
            communicator.allreduce(buffer, "mean")
        except CommunicationError as error:
            report["error"], report["seconds"] = str(error), time.monotonic() - start
            return
        report["done"].append(step)


def main() -> None:
    kind, path = sys.argv[1:3]
    timeout_s = float(sys.argv[3]) if len(sys.argv) > 3 else None
    report: dict[str, Any] = {"done": [], "why": "", "now": ""}
    try:
        if kind == "checks":
            run_checks(report, timeout_s)
        else:
            meet_accident(kind, report, timeout_s)
    except BaseException:
        report["why"] = f"{report['now']}: {traceback.format_exc()}"
        raise
    finally:
        Path(f"{path}.{os.environ['RANK']}").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
