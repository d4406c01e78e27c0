"""The communicator of torch.distributed: the suite of all communicators under torchrun, and ranks that fail."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from deep500.distributed.catalogue import COMMUNICATORS
from tests.mpi.communicator_checks import CHECKS

pytest.importorskip("torch")

from tests.conformance.rank_processes import PROJECT, reports, run_ranks

MODULE = "tests.conformance.torch_ranks"

#: Limits of a run, s; Python's and torch's start on a busy machine included.
SECONDS = 280

#: Those whose ranks have variables of a launcher already.
LAUNCHERS = ("PMI_", "OMPI_", "MPI_", "SLURM_", "PMIX_")


def variables(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program with its ranks; one that hangs is killed, with them, and fails."""
    return run_ranks(command, variables(), SECONDS)


def check_all(count: int, path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    finished = run([*command, "-m", MODULE, "checks", str(path), "60"])
    found = reports(path, count)

    assert not [report.get("why") for report in found if report.get("why")]
    assert finished.returncode == 0, finished.stderr[-3000:]
    host = [f"host {name}" for name in CHECKS]
    device = [f"device {name}" for name in CHECKS if name not in {"refused_buffers", "framework_tensors"}]
    assert [report["done"] for report in found] == [host + device] * count
    assert {report["kind"] for report in found} == {"TorchDistributedCommunicator"}  # chosen by the launcher
    assert [report["local_rank"] for report in found] == list(range(count))
    assert not left_over(path)


def test_under_torchrun(tmp_path: Path) -> None:
    check_all(2, tmp_path / "report")


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4])
def test_more_ranks_under_torchrun(count: int, tmp_path: Path) -> None:
    check_all(count, tmp_path / "report")


ACCIDENTS = [
    pytest.param("SIGKILL", None, "A peer has ended", 10.0),
    pytest.param("SIGSTOP", "2", "A peer has ended, was stopped", 10.0, marks=pytest.mark.slow),
    pytest.param("sys.exit", None, "A peer has ended", 10.0, marks=pytest.mark.slow),
    pytest.param("abort", None, "A peer has ended", 10.0, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "timeout_s", "message", "limit_s"), ACCIDENTS)
def test_other_ranks_get_an_error(
    kind: str, timeout_s: str | None, message: str, limit_s: float, tmp_path: Path
) -> None:
    """Without torchrun, which would end them: three ranks that are started by hand."""
    path = tmp_path / "report"
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", MODULE, kind, str(path), *([timeout_s] if timeout_s else [])]
    ranks = [
        subprocess.Popen(
            command,
            cwd=PROJECT,
            env=variables(RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="localhost", MASTER_PORT=str(port)),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        for rank in (0, 2):
            ranks[rank].communicate(timeout=SECONDS)
    finally:
        for process in ranks:
            process.kill()
    errors = ranks[1].communicate(timeout=SECONDS)[1]

    found = reports(path, 3)
    for rank in (0, 2):
        assert found[rank]["done"] == [0, 1, 2], found[rank]
        assert message in found[rank]["error"]
        assert "allreduce on rank" in found[rank]["error"]
        assert found[rank]["seconds"] < limit_s
    if kind == "abort":
        assert "[rank 1] The data set is gone. All ranks are ended." in errors
    assert not left_over(path)


def test_it_is_found_without_loading_torch() -> None:
    program = (
        "import sys; from deep500.distributed.catalogue import COMMUNICATORS as c; "
        "assert 'torch_distributed' in c; sys.exit('torch' in sys.modules)"
    )
    assert run([sys.executable, "-c", program]).returncode == 0
    assert COMMUNICATORS.get("torch_distributed").__name__ == "TorchDistributedCommunicator"


def left_over(path: Path) -> list[str]:
    """Return processes of the ranks that are still there after ten seconds."""
    for _ in range(100):
        found = [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline"])
            if MODULE in (process.info["cmdline"] or []) and str(path) in process.info["cmdline"]
        ]
        if not found:
            return []
        time.sleep(0.1)
    return found
