"""One suite over every communicator: thread ranks in this process, MPI's ranks under ``mpiexec``."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.catalogue import COMMUNICATORS
from deep500.distributed.communicator import Call, Work
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.communicators.simulated import run_simulated
from tests.conformance.scheme_launcher import LAUNCHER, PREFIX, PROJECT, build_counter
from tests.mpi.communicator_checks import CHECKS

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not Path(LAUNCHER).exists(), reason="mpi4py or mpiexec is missing"
)

#: A fault ends all ranks within this time; the start of Python and a busy machine included.
SECONDS = 30


def under_mpiexec(
    count: int, module: str, *arguments: str, environment: dict[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a module as ranks; a run that hangs is killed, with its ranks, and fails."""
    command = [LAUNCHER, "-n", str(count), sys.executable, "-m", module, *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=PROJECT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors), time.monotonic() - start


def test_every_communicator_has_a_suite() -> None:
    here = {"local", "mpi", "simulated"}
    elsewhere = {
        "nccl",  # tests/unit/distributed/communicators/test_nccl.py
        "torch_distributed",  # test_torch_distributed.py
        "ulfm",  # test_survivors.py
    }
    assert set(COMMUNICATORS.names()) == here | elsewhere


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CHECKS)
def test_thread_ranks(name: str, count: int) -> None:
    run_threads(count, CHECKS[name], timeout_s=60)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", CHECKS)
def test_simulated_ranks(name: str, count: int) -> None:
    run_simulated(count, CHECKS[name], timeout_s=60)


@pytest.mark.parametrize("name", CHECKS)
def test_single_rank(name: str) -> None:
    CHECKS[name](LocalCommunicator())


def test_tensorflow_tensors_are_exchanged_in_place() -> None:
    pytest.importorskip("tensorflow")
    run_threads(2, CHECKS["framework_tensors"])


@needs_mpi
@pytest.mark.parametrize(("count", "timeout_s"), [(1, None), (2, None), (3, None), (4, None), (3, 60)])
def test_mpi(count: int, timeout_s: float | None, tmp_path: Path) -> None:
    report = tmp_path / "report"
    arguments = [str(report)] if timeout_s is None else [str(report), str(timeout_s)]
    run, _ = under_mpiexec(count, "tests.mpi.communicator_checks", *arguments)
    reports: list[dict[str, Any]] = [
        json.loads(Path(f"{report}.{rank}").read_text())
        for rank in range(count)
        if Path(f"{report}.{rank}").exists()  # a rank that others have ended wrote none
    ]

    assert not [report["why"] for report in reports if report["failed"]]
    assert run.returncode == 0, run.stderr
    assert [report["done"] for report in reports] == [list(CHECKS)] * count


@needs_mpi
@pytest.mark.skipif(
    shutil.which("cc") is None or not (PREFIX / "include" / "mpi.h").exists(), reason="no C compiler or no mpi.h"
)
@pytest.mark.parametrize("timeout_s", [None, "60"])
def test_payload_is_what_mpi_is_given(timeout_s: str | None, tmp_path: Path) -> None:
    """Counted by MPI's profiling interface, in a library that is loaded before MPI."""
    library = build_counter(tmp_path)
    assert library is not None
    arguments = [str(library), *([timeout_s] if timeout_s else [])]
    run, _ = under_mpiexec(3, "tests.mpi.ledger_against_mpi", *arguments, environment={"LD_PRELOAD": str(library)})

    assert run.returncode == 0, run.stderr
    assert run.stdout.count("all bytes agree") == 3


FAULTS = [
    ("exception", "planted on purpose", None),
    ("exception in a thread", "planted on purpose", None),
    ("sys.exit(0)", "waits in allreduce for rank 1, which has ended", None),
    ("sys.exit(3)", "waits in allreduce for rank 1, which has ended", None),
    ("sys.exit(0)", "which has ended", "20"),
    ("SIGKILL", "Killed", None),
    ("SIGSTOP", "was not done within 3 s", "3"),
    ("SIGSTOP, large", "was not done within 3 s", "3"),
    ("SIGSTOP in allreduce", "was not done within 3 s", "3"),
    ("SIGSTOP before split", "split was not done within 3 s", "3"),
    ("sys.exit before split", "waits in split for rank 1, which has ended", None),
    ("os._exit(0)", "", None),
    ("abort", "The data set is gone.", None),
    ("other length", "MPI refused allreduce", None),
    ("leaves a receiver", "which has ended", None),
]


@needs_mpi
@pytest.mark.parametrize(("kind", "message", "timeout_s"), FAULTS)
def test_fault_of_one_rank_ends_all(kind: str, message: str, timeout_s: str | None) -> None:
    run, seconds = under_mpiexec(3, "tests.mpi.faults", kind, *([timeout_s] if timeout_s else []))

    assert run.returncode != 0 or kind == "os._exit(0)"  # which MPICH's launcher may take for success
    assert message in run.stderr + run.stdout
    assert run.stdout.count("finished") == (1 if kind == "leaves a receiver" else 0)
    assert seconds < SECONDS
    assert not _left_over(kind)


@needs_mpi
@pytest.mark.parametrize(
    ("kind", "code", "finished"), [("none", 0, 3), ("reduce, then slow root", 0, 3), ("all exit", 4, 0)]
)
@pytest.mark.parametrize("timeout_s", [None, "20"])
def test_ranks_that_end_properly_are_left_alone(kind: str, code: int, finished: int, timeout_s: str | None) -> None:
    run, _ = under_mpiexec(3, "tests.mpi.faults", kind, *([timeout_s] if timeout_s else []))

    assert run.returncode == code, run.stderr
    assert run.stdout.count("finished") == finished


@needs_mpi
def test_mpi_under_torchrun_is_refused() -> None:
    program = "from deep500.distributed.launch_environment import create_communicator as c; c({})"
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
    for name in ("", "'mpi'", "'local'"):
        run = subprocess.run(
            [sys.executable, "-c", program.format(name)],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode != 0
        assert "torchrun started 4 ranks" in run.stderr


@needs_mpi
def test_launcher_of_another_library_is_refused() -> None:
    """Each process is alone for its MPI, though the launcher says that it started four."""
    program = "from deep500.distributed.launch_environment import create_communicator as c; c()"
    environment = {**os.environ, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode != 0
    assert "sees rank 0 of 1, but Open MPI's mpiexec started 4 ranks" in run.stderr


class DropsRankZero(LocalCommunicator):
    """Its sums lack what rank 0 has."""

    def _start(self, call: Call) -> Work:
        if call.operation in ("allreduce", "reduce", "reduce_scatter") and self.rank == 0:
            call.buffer[...] = 0
        return super()._start(call)


class ForgetsToDivide(LocalCommunicator):
    """Its means are sums."""

    def iallreduce(self, buffer: Any, operation: str = "sum") -> Work:
        return super().iallreduce(buffer, "sum" if operation == "mean" else operation)


class SendsTheFront(LocalCommunicator):
    """Its broadcasts leave the end of a large buffer as it was."""

    def _start(self, call: Call) -> Work:
        if call.operation == "broadcast":
            call = dataclasses.replace(call, buffer=call.buffer[: 512 * 1024])
        return super()._start(call)


class CountsHalf(LocalCommunicator):
    """Its ledger counts every second message of a ring only."""

    def _record(self, name: str, given: Any, moved: Any, root: int = 0) -> None:
        super()._record(name, given, moved[::2], root)


class TakesCopies(LocalCommunicator):
    """It takes any buffer, and exchanges a copy of those that it cannot see in place."""

    def _view(self, buffer: Any) -> Any:
        return np.array(buffer, dtype=getattr(buffer, "dtype", np.float64)).reshape(-1)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (DropsRankZero, "allreduce"),
        (DropsRankZero, "reduce"),
        (DropsRankZero, "reduce_scatter"),
        (ForgetsToDivide, "iallreduce"),
        (ForgetsToDivide, "several_iallreduce_in_flight"),
        (SendsTheFront, "broadcast"),
        (CountsHalf, "ledger"),
        (TakesCopies, "allreduce"),
        (TakesCopies, "refused_buffers"),
    ],
)
def test_suite_finds_a_communicator_that_is_wrong(broken: type[LocalCommunicator], check: str) -> None:
    def run(communicator: LocalCommunicator) -> None:
        CHECKS[check](broken(communicator.rank, communicator._exchange, timeout_s=60))

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_threads(3, run)


def test_messages_of_another_size_are_refused() -> None:
    def exchange(communicator: LocalCommunicator) -> None:
        if communicator.rank == 0:
            communicator.send(np.zeros(4), 1)
        else:
            communicator.recv(np.zeros(5), 0)

    with pytest.raises(CommunicationError, match="receives 40 bytes from rank 0, which sends 32"):
        run_threads(2, exchange)


def _left_over(kind: str) -> list[str]:
    """Return processes of the program that are still there after ten seconds."""
    for _ in range(100):
        found = [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline"])
            if "tests.mpi.faults" in (process.info["cmdline"] or []) and kind in process.info["cmdline"]
        ]
        if not found:
            return []
        time.sleep(0.1)
    return found
