"""A training that is killed with SIGKILL at any step and goes on ends with the bits of one that was not killed."""

from __future__ import annotations

import functools
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deep500.frameworks import FRAMEWORKS

JOB = Path(__file__).with_name("resume_job.py")
STEPS_AN_EPOCH = 7
FRAMEWORK_NAMES = ("pytorch", "tensorflow", "reference")

#: Of the pairs of optimizer and framework, those that are run each time; the others take their turn with ``-m slow``.
ALWAYS = {("momentum", "pytorch"), ("adam", "tensorflow"), ("adam", "reference")}
MOST_FRAMEWORKS = ["pytorch", "reference", pytest.param("tensorflow", marks=pytest.mark.slow)]
PAIRS = [
    pytest.param(framework, optimizer, marks=[] if (optimizer, framework) in ALWAYS else [pytest.mark.slow])
    for framework in FRAMEWORK_NAMES
    for optimizer in ("momentum", "adam")
]


def job(framework: str, optimizer: str, folder: Path, kill_at: int, *options: str) -> bytes | None:
    """Run the job; return what it wrote, ``None`` where it was killed."""
    out = folder.with_suffix(".bytes")
    out.unlink(missing_ok=True)
    command = [sys.executable, str(JOB), framework, optimizer, str(folder), str(out), str(kill_at), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(JOB.parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    if kill_at:
        assert done.returncode == -signal.SIGKILL, done.stderr
        return None
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


@functools.cache
def uninterrupted(framework: str, optimizer: str, *options: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        found = job(framework, optimizer, Path(folder) / "whole", 0, *options)
    assert found is not None
    return found


def resumed(tmp_path: Path, framework: str, optimizer: str, kill_at: int, *options: str) -> bytes:
    folder = tmp_path / "checkpoints"
    job(framework, optimizer, folder, kill_at, *options)
    found = job(framework, optimizer, folder, 0, *options)
    assert found is not None
    return found


def installed(framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")


@pytest.mark.parametrize(("framework", "optimizer"), PAIRS)
def test_killed_at_any_step_it_goes_on_bit_for_bit(tmp_path: Path, framework: str, optimizer: str) -> None:
    installed(framework)
    kill_at = random.Random(f"{framework} {optimizer}").randrange(1, 6 * STEPS_AN_EPOCH)

    assert resumed(tmp_path, framework, optimizer, kill_at) == uninterrupted(framework, optimizer)


@pytest.mark.parametrize("framework", MOST_FRAMEWORKS)
def test_killed_after_three_of_six_epochs(tmp_path: Path, framework: str) -> None:
    """With checkpoints at the ends of epochs alone; what was trained after the last one is trained again."""
    installed(framework)
    kill_at = 3 * STEPS_AN_EPOCH + 2

    assert resumed(tmp_path, framework, "adam", kill_at, "epochs") == uninterrupted(framework, "adam")


@pytest.mark.parametrize("framework", MOST_FRAMEWORKS)
def test_dropout_without_a_seed_goes_on(tmp_path: Path, framework: str) -> None:
    installed(framework)

    found = resumed(tmp_path, framework, "momentum", 2 * STEPS_AN_EPOCH + 4, "unseeded")
    assert found == uninterrupted(framework, "momentum", "unseeded")


@pytest.mark.skipif(importlib.util.find_spec("deep500.training.input_pipeline") is None, reason="no input pipeline")
def test_workers_change_nothing(tmp_path: Path) -> None:
    found = resumed(tmp_path, "reference", "adam", STEPS_AN_EPOCH + 3, "workers")

    assert found == uninterrupted("reference", "adam")


@pytest.mark.parametrize("omission", ["no-optimizer", "no-position", "no-random"])
def test_planted_omission_is_found(tmp_path: Path, omission: str) -> None:
    """What the tests above compare does show it when a part is not kept."""
    found = resumed(tmp_path, "reference", "momentum", STEPS_AN_EPOCH + 3, omission)

    assert found != uninterrupted("reference", "momentum")


@pytest.mark.parametrize("framework", ["pytorch", pytest.param("tensorflow", marks=pytest.mark.slow)])
def test_planted_omission_of_the_frameworks_stream_is_found(tmp_path: Path, framework: str) -> None:
    installed(framework)

    found = resumed(tmp_path, framework, "momentum", STEPS_AN_EPOCH + 3, "no-random", "unseeded")
    assert found != uninterrupted(framework, "momentum", "unseeded")
