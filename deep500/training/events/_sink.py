"""Sinks: experiment trackers that a training's numbers go to while it runs."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

from deep500.core.requirement import Requirement
from deep500.training.events._recording import Recording, Row
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["SinkEvent", "description"]

#: What the numbers of a row are called in a tracker, by the kind of the row; names with a slash are grouped by it.
_NAMES = {
    "step": {"loss": "loss/training"},
    "test": {"test_loss": "loss/test", "test_accuracy_percent": "accuracy_percent/test"},
    "epoch": {
        "training_loss": "loss/training_epoch",
        "training_accuracy_percent": "accuracy_percent/training",
        "samples_per_s": "speed/samples_per_s",
    },
}


class SinkEvent(Recording):
    """Sends losses, accuracies, hyperparameters and throughput to a tracker.

    The tracker's library is imported when a training begins; without it, the training does not. A tracker that fails
    later is told of once, and the training goes on without it.

    Attributes:
        requirement: The library.
    """

    requirement: ClassVar[Requirement]

    _description: dict[str, str | float]

    def _begin(self, runner: Trainer, stats: TrainingStatistics) -> None:
        self.requirement.require(f"The event {type(self).__name__}")
        self._description = description(runner)
        self._prepare(runner, stats)

    @abc.abstractmethod
    def _prepare(self, runner: Trainer, stats: TrainingStatistics) -> None:
        """Check that the tracker can be written to; what is raised ends the training before it begins."""

    @abc.abstractmethod
    def _send(self, step: int, values: dict[str, float]) -> None:
        """Send numbers by name, of a training in which so many steps are done."""

    def _write(self, kind: str, rows: list[Row]) -> None:
        for row in rows:
            named = {_NAMES[kind].get(name): value for name, value in row.items()}
            if kind == "step":
                named |= {f"hyperparameters/{name}": row.get(name) for name in self._names}
            values = {name: float(value) for name, value in named.items() if name is not None and value is not None}
            if values:
                self._send(int(row["step"]), values)


def description(runner: Trainer) -> dict[str, str | float]:
    """Return what a training is, as trackers show it."""
    optimizer, executor = runner.optimizer, runner.executor
    values = {name: getattr(optimizer, name, None) for name in optimizer.hyperparameter_names}
    numbers = {n: float(v) for n, v in values.items() if isinstance(v, (int, float)) and math.isfinite(v)}
    return {
        "network": executor.network.name,
        "framework": executor.framework,
        "device": str(executor.device),
        "optimizer": type(optimizer).__name__,
        "batch_size": runner.train_sampler.batch_size,
        **numbers,
    }
