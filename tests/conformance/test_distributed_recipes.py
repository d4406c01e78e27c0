"""Recipes on several ranks: they mean what they mean on one, schemes train, and a run that was broken off goes on.

Ranks are threads of this process, or processes under ``mpiexec``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from deep500.core.errors import CheckpointError
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.communicators.local import run_threads
from deep500.frameworks import FRAMEWORKS
from deep500.recipe.loading import load_recipe
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.runner import execute_recipe
from deep500.training.training_event import RunnerEvent
from tests.conformance import rank_recipe_job
from tests.conformance.rank_recipe_job import Planted
from tests.conformance.test_communicators import LAUNCHER, PROJECT, needs_mpi

FRAMEWORK_NAMES = ("pytorch", "tensorflow", "reference")

#: Schemes that train digits each time; all others take their turn with ``-m slow``.
ALWAYS = ("allreduce", "top_k")

#: Accuracy in per cent that every scheme reaches on digits with its default arguments.
ENOUGH = 95.0


def installed(framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")


def changed(recipe: Recipe, **values: Any) -> Recipe:
    """Return a recipe with other values, of what it fixes too."""
    fixed = {key: value for key, value in recipe.fixed.items() if key not in values}
    return Recipe(fixed, {**recipe.mutable, **values}, recipe.metrics, name=recipe.name, path=recipe.path)


class Losses(RunnerEvent):
    """Keeps the losses of the steps, which are those of all ranks together."""

    def __init__(self) -> None:
        self.steps: list[float] = []

    def __deepcopy__(self, memo: Any) -> Losses:
        return self

    def after_training(self, runner: Any, training_stats: Any) -> None:
        if runner.optimizer.ranks.is_first:
            self.steps = [loss for record in training_stats.epochs for loss in record.training.step_losses]


def losses_of(recipe: Recipe, ranks: int) -> list[float]:
    seen = Losses()
    made = changed(recipe, events=[seen])
    if ranks == 1:
        execute_recipe(made)
    else:
        run_threads(ranks, lambda communicator: execute_recipe(made, communicator=communicator), timeout_s=120)
    return seen.steps


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_two_ranks_train_as_one_process(framework: str) -> None:
    """The losses of the first steps of LeNet on digits, with the minibatch of the recipe on any number of ranks."""
    installed(framework)
    recipe = override_recipe(load_recipe("digits_lenet"), framework=framework)
    short = changed(Recipe({k: v for k, v in recipe.fixed.items() if k != "epochs"}, {**recipe.mutable, "steps": 20},
                           recipe.metrics, name="digits_lenet"))  # fmt: skip

    one, two = losses_of(short, 1), losses_of(short, 2)

    assert len(one) == len(two) == 20
    np.testing.assert_allclose(two, one, rtol=2e-5)


def accuracy(scheme: str, framework: str, ranks: int = 2) -> float:
    """Train a small network, at a rate that means of 512 values for each of them (``one_bit``) are exact enough for."""
    recipe = changed(
        override_recipe(load_recipe("digits_mlp"), framework=framework),
        distributed=scheme,
        model_kwargs={"hidden": (64,)},
        epochs=20,
        optimizer="momentum",
        optimizer_kwargs={"learning_rate": 0.03, "momentum": 0.9},
    )
    found = run_threads(ranks, lambda communicator: execute_recipe(recipe, communicator=communicator), timeout_s=300)
    values = {result.metrics[0].value for result in found}
    assert len(values) == 1
    (value,) = values
    assert value is not None
    return value


@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.slow, pytest.mark.timeout(600)])
        for name in SCHEMES
        if name != "native"  # a framework's own, which needs processes: tests of the framework's adapter have it
    ],
)
def test_every_scheme_trains_digits(scheme: str) -> None:
    assert accuracy(scheme, "reference") >= ENOUGH


# --- A run that is broken off goes on bit for bit. ---


def thread_ranks(framework: str, scheme: str, folder: Path, fault: str = "", *, resume: bool = False) -> list[bytes]:
    """Train on two thread ranks; return the parameters of each."""
    os.environ.update(FAULT=fault, OUT=str(folder.with_suffix(".bytes")))
    try:
        run_threads(2, lambda c: rank_recipe_job.run(framework, scheme, folder, c, resume=resume), timeout_s=120)
    finally:
        os.environ.pop("FAULT")
        os.environ.pop("OUT")
    return [Path(f"{folder.with_suffix('.bytes')}.{rank}").read_bytes() for rank in range(2)]


@functools.cache
def uninterrupted(framework: str, scheme: str) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return thread_ranks(framework, scheme, Path(folder) / "whole")


CASES = [
    pytest.param(framework, scheme, marks=[] if scheme == "top_k" else [pytest.mark.slow])
    for framework in FRAMEWORK_NAMES
    for scheme in ("top_k", "local_sgd", "zero_1", "power_sgd")
]


@pytest.mark.parametrize(("framework", "scheme"), CASES)
def test_a_run_that_failed_goes_on_bit_for_bit(tmp_path: Path, framework: str, scheme: str) -> None:
    """Step 9 is the third of the second epoch, one after a checkpoint: it is trained again."""
    installed(framework)
    whole = uninterrupted(framework, scheme)
    with pytest.raises(Planted):
        thread_ranks(framework, scheme, tmp_path / "c", "all:9:")

    assert thread_ranks(framework, scheme, tmp_path / "c", resume=True) == whole
    assert whole[0].startswith(b"completed 18\n")


def test_what_a_rank_has_not_sent_is_in_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted omission: residuals that begin anew at zero are found by the comparison."""
    whole = uninterrupted("reference", "top_k")
    with pytest.raises(Planted):
        thread_ranks("reference", "top_k", tmp_path / "c", "all:9:")
    documents = [json.loads((tmp_path / f"c/step-000000008/state.rank-{rank}.json").read_text()) for rank in range(2)]
    assert [document["optimizer"]["rank"] for document in documents] == [0, 1]

    monkeypatch.setattr(SCHEMES.get("top_k"), "restore", lambda scheme, state: scheme.check(state))
    assert thread_ranks("reference", "top_k", tmp_path / "c", resume=True) != whole


def test_another_number_of_ranks_does_not_go_on(tmp_path: Path) -> None:
    with pytest.raises(Planted):
        thread_ranks("reference", "top_k", tmp_path / "c", "all:9:")

    for count in (1, 4):
        with pytest.raises(CheckpointError, match=rf"was written by 2 ranks, and here {count if count > 1 else 'a'} "):
            run_threads(
                count, lambda c: rank_recipe_job.run("reference", "top_k", tmp_path / "c", c, resume=True), timeout_s=60
            )


# --- Ranks that are processes. ---


def under_mpiexec(*arguments: str, seconds: float = 240, **variables: str) -> tuple[int, str]:
    """Run Python on two ranks; return the exit code and what was written. Nothing of them is left, whatever happens."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT), **variables}
    process = subprocess.Popen(
        [LAUNCHER, "-n", "2", sys.executable, *arguments],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    known = psutil.Process(process.pid)
    ranks: list[psutil.Process] = []
    try:
        while process.poll() is None and not ranks:
            ranks = known.children(recursive=True)
            time.sleep(0.05)
        said, _ = process.communicate(timeout=seconds)
        _, alive = psutil.wait_procs([child for child in ranks if child.is_running()], timeout=10)
        assert not alive, f"left: {alive}"
    finally:
        for child in [*ranks, *(known.children(recursive=True) if process.poll() is None else [])]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()
    return process.returncode, said


def process_ranks(
    framework: str, scheme: str, folder: Path, fault: str = "", *options: str
) -> tuple[int, str, list[bytes]]:
    """Train on two ranks of mpiexec; return the exit code, what was written, and the parameters of each rank."""
    out = folder.with_suffix(".bytes")
    for rank in range(2):
        Path(f"{out}.{rank}").unlink(missing_ok=True)
    module = ["-m", rank_recipe_job.__name__]
    code, said = under_mpiexec(*module, framework, scheme, str(folder), str(out), *options, FAULT=fault)
    written = [Path(f"{out}.{rank}") for rank in range(2)]
    return code, said, [path.read_bytes() for path in written if path.exists()]


@functools.cache
def uninterrupted_processes(framework: str, scheme: str) -> list[bytes]:
    """Return what processes come to: with as many threads as those that are killed, on which the last bits depend."""
    with tempfile.TemporaryDirectory() as folder:
        code, said, found = process_ranks(framework, scheme, Path(folder) / "whole")
    assert code == 0, said
    return found


@needs_mpi
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "framework",
    [pytest.param(name, marks=[] if name == "pytorch" else [pytest.mark.slow]) for name in FRAMEWORK_NAMES],
)
def test_killed_on_one_rank_it_goes_on_bit_for_bit(tmp_path: Path, framework: str) -> None:
    installed(framework)
    code, said, found = process_ranks(framework, "top_k", tmp_path / "c", f"1:9:{signal.SIGKILL:d}")
    assert code != 0, said
    assert not found

    code, said, found = process_ranks(framework, "top_k", tmp_path / "c", "", "resume")

    assert code == 0, said
    assert found == uninterrupted_processes(framework, "top_k")


@needs_mpi
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "rank", [1, pytest.param(0, marks=pytest.mark.slow), pytest.param("all", marks=pytest.mark.slow)]
)
def test_a_signal_makes_all_ranks_write_after_the_same_step_and_leave(tmp_path: Path, rank: int | str) -> None:
    """Step 7 is within an epoch, and no checkpoint is due after it."""
    folder = tmp_path / "c"
    code, said, found = process_ranks("reference", "top_k", folder, f"{rank}:7:{signal.SIGTERM:d}")

    assert code != 0, said
    assert [content.split(b"\n")[0] for content in found] == [b"interrupted 7"] * 2
    newest = sorted(path.name for path in folder.glob("step-*"))[-1]
    assert newest == "step-000000007"
    assert json.loads((folder / newest / "manifest.json").read_text())["ranks"] == 2

    code, said, found = process_ranks("reference", "top_k", folder, "", "resume")

    assert code == 0, said
    assert found == uninterrupted_processes("reference", "top_k")


@needs_mpi
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_the_recipe_of_digits_passes_on_two_ranks(tmp_path: Path, framework: str) -> None:
    installed(framework)
    output = tmp_path / "result.json"
    code, said = under_mpiexec(
        *("-m", "deep500", "run", "recipes/digits_lenet.py", "--framework", framework),
        *("--set", "distributed=allreduce", "--output", str(output)),
        seconds=500,
    )

    result = json.loads(output.read_text())
    assert code == 0, said
    assert said.splitlines().count("PASSED") == 1
    assert result["passed"]
    assert (result["ranks"]["count"], result["ranks"]["scheme"]) == (2, "allreduce")
    assert result["ranks"]["communicator"] == "MPICommunicator"
    assert all(sent > 0 for sent in result["ranks"]["sent_bytes"])
