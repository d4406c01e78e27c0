"""A recipe whose ranks meet with accidents, run by the tests of ``deep500 run --ranks 3 --on-failure shrink``.

``FAULT=kind:hook:step:rank`` in the environment has that rank meet with it there, several separated by commas; the hook
``built`` is before the ranks agree on that, ``begin`` after it, before what is run is written. Ranks are numbered as
they were started; the kinds are ``SIGKILL``, ``exception``, ``exit`` and ``slow``, which only makes the rank wait, once
it has made the file ``SLOW``. ``OUT`` in the environment has each rank write the bytes of its parameters in the end, to
``OUT.RANK``.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import deep500 as d5
from deep500.recipe import runner
from deep500.recipe.runner import run_recipe
from deep500.training.training_event import RunnerEvent


def accident(kind: str) -> None:
    """Meet with it."""
    if kind == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "exception":
        raise ValueError("planted on purpose")
    if kind == "exit":
        os._exit(0)
    Path(os.environ["SLOW"]).touch()
    time.sleep(3)


def meet(hook: str, step: int, rank: int) -> None:
    """Look whether it is time for one."""
    for fault in filter(None, os.environ.get("FAULT", "").split(",")):
        kind, at_hook, at_step, of_rank = fault.split(":")
        if (at_hook, int(at_step), int(of_rank)) == (hook, step, rank):
            accident(kind)


class Accuracy(d5.TestAccuracy):
    """Meets with accidents when all is built, and right before the first rank writes what is run."""

    def fresh(self) -> Accuracy:
        rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
        meet("built", 0, rank)
        plain = runner.take_witness  # what the runner does last before it

        def take_witness() -> Any:
            meet("begin", 0, rank)
            return plain()

        runner.take_witness = take_witness
        return self


class Accidents(RunnerEvent):
    """Has ranks meet with accidents."""

    may_stop = False

    def meet(self, hook: str, step: int, runner: Any) -> None:
        """Look whether it is time for one."""
        communicator = runner.optimizer.communicator
        meet(hook, step, communicator.world_ranks[communicator.rank])

    def before_step(self, step: int, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.meet("before_step", step, runner)

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.meet("after_step", step, runner)

    def after_test_batch(self, runner: Any, training_stats: Any, outputs: Any) -> None:
        self.meet("test", training_stats.steps, runner)

    def after_training(self, runner: Any, training_stats: Any) -> None:
        self.meet("end", training_stats.steps, runner)
        if "OUT" in os.environ:
            communicator, network = runner.optimizer.communicator, runner.executor.network
            content = b"".join(np.ascontiguousarray(a).tobytes() for a in network.fetch_tensors([*network.parameters]))
            Path(f"{os.environ['OUT']}.{communicator.world_ranks[communicator.rank]}").write_bytes(content)


FIXED = {
    "model": "mlp",
    "model_kwargs": {"hidden": (16,)},
    "dataset": "digits",
    "dataset_kwargs": {"test_samples": 1197},  # 600 to train, 25 minibatches of 24
    "epochs": 3,
}
MUTABLE = {
    "batch_size": 24,
    "executor": "reference",
    "optimizer": "momentum",
    "optimizer_kwargs": {"learning_rate": 0.05, "momentum": 0.9},
    "events": [Accidents()],
}
METRICS = [(Accuracy(), 60.0)]

if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
