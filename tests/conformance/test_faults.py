"""Whatever happens to a rank: a message that says what, an exit code that is not zero, and no process that is left."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from deep500.core.errors import MissingDependencyError
from deep500.distributed.launch import find_mpiexec

PROJECT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("fault_job.py")

#: No launch takes longer, with the start of Python on a busy machine.
LIMIT_S = 120.0

#: From the fault to the end of the launcher, on a busy machine; without a watch the ranks would wait for ever.
END_S = 40.0

#: So long processes may be there after the launcher's end.
LEFT_S = 10.0


def _has_mpi() -> bool:
    try:
        return bool(find_mpiexec()) and importlib.util.find_spec("mpi4py") is not None
    except MissingDependencyError:
        return False


pytestmark = pytest.mark.skipif(not _has_mpi(), reason="mpi4py or mpiexec is missing")


@dataclass
class Launch:
    """What came of a launch."""

    code: int
    output: str
    errors: str
    seconds: float
    left: list[int]


def launched(
    arguments: list[str], folder: Path, during: Callable[[subprocess.Popen[str]], None] = lambda _: None
) -> Launch:
    """Launch, do something meanwhile, and wait for the end and for the end of every process that a rank has told of."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT), "COLUMNS": "200"}
    command = [sys.executable, "-m", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env=variables, text=True, start_new_session=True, **pipes)
    ranks: list[psutil.Process] = []
    try:
        during(process)
        start = time.monotonic()
        output, errors = process.communicate(timeout=LIMIT_S)
        seconds = time.monotonic() - start
    finally:
        ranks = [*_told_of(folder), *_children(process.pid)]
        _, left = psutil.wait_procs(ranks, timeout=LEFT_S)
        for survivor in left:
            survivor.kill()
        process.kill()
    return Launch(process.returncode, output, errors, seconds, [survivor.pid for survivor in left])


def faulty(
    kind: str, folder: Path, *options: str, timeout_s: float = 60, ranks: int = 2, **more: Callable[..., None]
) -> Launch:
    arguments = ["-n", str(ranks), *options, str(JOB), kind, str(folder), str(timeout_s)]
    return launched(["deep500.distributed.launch", *arguments], folder, **more)


def _told_of(folder: Path) -> list[psutil.Process]:
    found = []
    for path in folder.glob("rank.*"):
        for pid in path.read_text().split():
            if psutil.pid_exists(int(pid)):
                found.append(psutil.Process(int(pid)))
    return found


def _children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []


def wait_for_training(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until both ranks have made some steps."""
    deadline = time.monotonic() + LIMIT_S
    while len(list(folder.glob("trains.*"))) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ranks_that_come_to_their_end_are_left_alone(tmp_path: Path) -> None:
    done = faulty("none", tmp_path, "--rank-logs", str(tmp_path / "logs"))

    assert (done.code, done.errors, done.left) == (0, "", [])
    assert done.output == "rank 0 has finished\n"
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert logs == {f"rank-{rank}.log": f"rank {rank} has finished\n" for rank in range(2)}


#: What happens to rank 1, what is told, and with which code all ends.
FAULTS = [
    ("SIGKILL", r"Rank 1 of 2 was ended by SIGKILL", 2),
    ("exception", "[rank 1] ValueError: planted on purpose", 1),
    ("exception in a thread", "[rank 1] Exception in thread helper:", 1),
    ("sys.exit(0)", "for rank 1, which has ended", 2),
    ("os._exit(0)", "Rank 1 of 2 ended in the midst of its program", 2),
    ("other data size", "for rank 1, which has ended", 2),
    ("other scheme arguments", "Give every rank the same.", 1),
]

#: Variants of them.
MORE_FAULTS = [
    ("SIGKILL, with a worker", "Rank 1 of 2 was ended by SIGKILL", 2),
    ("SIGSEGV", "Rank 1 of 2 was ended by SIGSEGV", 2),
    ("sys.exit(3)", "for rank 1, which has ended", 2),
    ("sys.exit(text)", "Error: rank 1: there is no more data", 1),
    ("os._exit(3)", "Rank 1 of 2 ended in the midst of its program", 2),
    ("exception before MPI", "[rank 1] ValueError: planted on purpose", 1),
]


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [*FAULTS, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE_FAULTS)],
)
def test_fault_of_one_rank_ends_all(kind: str, message: str, code: int, tmp_path: Path) -> None:
    done = faulty(kind, tmp_path)

    assert message in done.errors
    assert done.code == code
    assert done.output.count("finished") == 0
    assert done.errors.count("Traceback") <= 1
    assert done.seconds < END_S
    assert not done.left


@pytest.mark.parametrize("kind", ["SIGSTOP", pytest.param("SIGSTOP before MPI", marks=pytest.mark.slow)])
def test_stopped_rank_is_an_error_after_the_timeout(kind: str, tmp_path: Path) -> None:
    done = faulty(kind, tmp_path, "--timeout", "3", timeout_s=3)

    assert "Rank 1 of 2 did not answer" in done.errors
    assert (done.code, done.left) == (2, [])
    assert done.seconds < END_S


def test_exception_that_python_ignores_ends_nothing(tmp_path: Path) -> None:
    done = faulty("exception that Python ignores", tmp_path, "--rank-logs", str(tmp_path / "logs"))

    assert (done.code, done.left) == (0, [])
    assert "[rank 1] ValueError: planted on purpose" in (tmp_path / "logs" / "rank-1.log").read_text()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), pytest.param(signal.SIGTERM, -15, marks=pytest.mark.slow)]
)
def test_signal_of_the_launcher_reaches_all_ranks(number: int, code: int, tmp_path: Path) -> None:
    def during(process: subprocess.Popen[str]) -> None:
        wait_for_training(process, tmp_path)
        process.send_signal(number)

    done = faulty("trains", tmp_path, during=during)

    assert (done.code, done.left) == (code, [])
    assert done.seconds < END_S


def test_no_rank_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    def during(process: subprocess.Popen[str]) -> None:
        wait_for_training(process, tmp_path)
        process.kill()

    done = faulty("trains", tmp_path, during=during)

    assert (done.code, done.left) == (-signal.SIGKILL, [])


RECIPE = """
import os, signal, sys, time, threading
import numpy as np
import deep500 as d5
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.distributed.launch_environment import detect

RANK = detect().rank
KIND = os.environ.get("FAULT", "none")
with open(f"rank.{RANK}", "w") as file:
    file.write(str(os.getpid()))


class Accident(d5.RunnerEvent):
    steps = 0

    def after_step(self, step, runner, training_stats, outputs, loss):
        self.steps += 1
        if KIND == "slow":
            time.sleep(0.01)
        if self.steps == 20:
            open(f"trains.{RANK}", "w").close()
        if self.steps == 3 and RANK == 1:
            if KIND == "exception":
                raise ValueError("planted on purpose")
            if KIND == "sys.exit(0)":
                sys.exit(0)
            if KIND == "SIGKILL":
                os.kill(os.getpid(), signal.SIGKILL)


def data():
    samples = 48 - 16 * (detect().rank == 1 and os.environ.get("FAULT") == "other data size")
    random, labels = np.random.default_rng(0), np.arange(72) % 3
    images = random.normal(0, 0.1, (72, 1, 2, 2)).astype(np.float32)
    return tuple(NumpyDataset(images[a:b], "input", labels[a:b], "label") for a, b in ((0, samples), (48, 72)))


if KIND == "long import":  # of a framework, which puts signals off
    from deep500.core.signals import signals_deferred

    with signals_deferred():
        open(f"trains.{RANK}", "w").close()
        time.sleep(2 * 60)

FIXED = {"model": "mlp", "model_kwargs": {"hidden": (6,)}, "dataset": data}
MUTABLE = {"batch_size": 8, "executor": "reference", "optimizer": "momentum", "events": [Accident()],
           "epochs": int(os.environ.get("EPOCHS", 3)), "optimizer_kwargs": {"learning_rate": 0.1, "momentum": 0.5},
           "distributed": "local_sgd", "distributed_kwargs": {"period": 1 + (RANK == 1 and KIND == "other arguments")}}
METRICS = [(d5.TestAccuracy(), float(os.environ.get("ACCEPTED", 0)))]
"""


def run_recipe(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, **variables: str) -> Launch:
    during = variables.pop("during", lambda _: None)
    (folder / "mine.py").write_text(RECIPE)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return launched(["deep500", "run", "mine.py", "--ranks", "2", *options], folder, during)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("exception", "Error: rank 1: mine.py:25: ValueError: planted on purpose"),
        pytest.param("sys.exit(0)", "Error: rank 1: mine.py:27: SystemExit: 0", marks=pytest.mark.slow),
        pytest.param("SIGKILL", "Error: Rank 1 of 2 was ended by SIGKILL", marks=pytest.mark.slow),
        ("other data size", "Error: The ranks have data sets of different sizes: rank 0 has 48 samples"),
        pytest.param("other arguments", "Error: The ranks were given different conf", marks=pytest.mark.slow),
    ],
)
def test_fault_in_a_recipe_is_told_in_one_line(
    kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_recipe(tmp_path, monkeypatch, FAULT=kind)

    assert done.errors.startswith(message)
    assert (done.code, done.errors.count("\n"), done.left) == (2, 1, [])
    assert "PASSED" not in done.output
    assert done.seconds < END_S


@pytest.mark.slow
def test_recipe_that_fails_is_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_recipe(tmp_path, monkeypatch, ACCEPTED="101", EPOCHS="1")

    assert (done.code, done.errors, done.left) == (1, "", [])
    assert done.output.splitlines()[-1] == "FAILED"
    assert done.output.count("FAILED") == 2  # the metric's and the recipe's, of rank 0 alone


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_signal_during_a_recipe_leaves_a_checkpoint(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def during(process: subprocess.Popen[str]) -> None:
        wait_for_training(process, tmp_path)
        process.send_signal(number)

    options = ("--checkpoint", "kept", "--output", "r.json")
    done = run_recipe(tmp_path, monkeypatch, *options, FAULT="slow", EPOCHS="100000", during=during)  # type: ignore[arg-type]

    assert (done.code, done.left) == (code, [])
    assert done.errors.endswith("a checkpoint is written after this step, then the training ends.\n")
    assert done.errors.count("\n") == 1
    assert done.output.splitlines()[-1] == "FAILED (incomplete)"
    assert done.seconds < END_S
    assert (tmp_path / "r.json").exists()
    assert list((tmp_path / "kept").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_while_a_framework_is_imported_is_not_waited_for(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def during(process: subprocess.Popen[str]) -> None:
        wait_for_training(process, tmp_path)
        process.send_signal(number)

    done = run_recipe(tmp_path, monkeypatch, "--output", "r.json", FAULT="long import", during=during)  # type: ignore[arg-type]

    assert (done.code, done.left, done.errors, done.output) == (code, [], "", "")
    assert done.seconds < END_S
    assert not (tmp_path / "r.json").exists()


@pytest.mark.slow
def test_output_that_nobody_reads_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RECIPE)
    command = f"'{sys.executable}' -m deep500 run mine.py --ranks 2 | true; exit ${{PIPESTATUS[0]}}"
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, "")
