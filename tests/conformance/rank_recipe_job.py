"""A recipe on the ranks of mpiexec, or of threads, that tests kill or interrupt: dropout, augmentation, checkpoints.

``mpiexec -n 2 python rank_recipe_job.py FRAMEWORK SCHEME FOLDER OUT [resume]`` trains, with checkpoints in FOLDER, and
each rank writes the bytes of its parameters and what the statistics say to OUT.RANK. ``FAULT=rank:step:signal`` in the
environment makes that rank send itself a signal right after the step; ``FAULT=rank:step:`` makes it raise an exception.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from deep500.distributed.communicator import Communicator
from deep500.distributed.launch_environment import create_communicator
from deep500.recipe.recipe import Recipe
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.training_event import RunnerEvent
from tests.conformance.resume_job import Jitter, data, network

EPOCHS, SAMPLES, BATCH = 3, 96, 16

#: Arguments of schemes that need others with a network as small as this.
ARGUMENTS: dict[str, dict[str, Any]] = {"top_k": {"density": 0.05}}


class Planted(Exception):  # noqa: N818 - it stands for any
    """A fault of a test."""


class Witness(RunnerEvent):
    """Makes the fault, and writes what a rank has come to in the end."""

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        rank, at, number = (os.environ.get("FAULT") or "::").split(":")
        ranks = runner.optimizer.ranks
        if at and training_stats.steps == int(at) and (rank == "all" or int(rank) == ranks.rank):
            if not number:
                raise Planted(f"planted on rank {ranks.rank}")
            os.kill(os.getpid(), int(number))

    def after_training(self, runner: Any, training_stats: Any) -> None:
        out = os.environ.get("OUT")
        if not out:
            return
        net = runner.executor.network
        tensors = net.fetch_tensors([*net.parameters, *net.states])
        losses = [loss for record in training_stats.epochs if record.training for loss in record.training.step_losses]
        tests = [[record.test.loss, record.test.accuracy_percent] for record in training_stats.epochs if record.test]
        content = b"".join(np.ascontiguousarray(a).tobytes() for a in (*tensors, np.array(losses), np.array(tests)))
        note = f"{training_stats.outcome.value} {training_stats.steps}\n".encode()
        Path(f"{out}.{runner.optimizer.ranks.rank}").write_bytes(note + content)


def seeded_network() -> Any:
    return network(seeded=True)


def data_sets() -> Any:
    return data(SAMPLES), data(30)


def recipe(framework: str, scheme: str, **changes: Any) -> Recipe:
    """Return a recipe with all that a resumed training may forget."""
    mutable = {
        "batch_size": BATCH,
        "executor": framework,
        "optimizer": "adam",
        "optimizer_kwargs": {"learning_rate": 0.01},
        "distributed": scheme,
        "distributed_kwargs": ARGUMENTS.get(scheme, {}),
        "train_transformations": [Jitter()],
        "events": [Witness()],
        "seed": 3,
        **changes,
    }
    return Recipe({"model": seeded_network, "dataset": data_sets, "epochs": EPOCHS}, mutable, [(TestAccuracy(), 34.0)])


def run(
    framework: str, scheme: str, folder: str | Path, communicator: Communicator, *, resume: bool, **changes: Any
) -> RecipeResult:
    """Train, or go on."""
    places: dict[str, Any] = {"resume" if resume else "checkpoint": folder}
    made = recipe(framework, scheme, **changes)
    return execute_recipe(made, communicator=communicator, checkpoint_every="2steps", **places)


def main(framework: str, scheme: str, folder: str, *options: str) -> int:
    """Train as a rank of mpiexec; return the exit code."""
    try:
        result = run(framework, scheme, folder, create_communicator(), resume="resume" in options)
    except KeyboardInterrupt:
        return 128 + signal.SIGTERM
    return 0 if result.passed else 1


def interrupt(number: int, frame: Any) -> None:
    """End as with Ctrl-C, as the command does."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    os.environ["OUT"] = sys.argv[4]
    sys.exit(main(*sys.argv[1:4], *sys.argv[5:]))
