"""What the metrics of a distributed training share: finding its optimizer in what they are given, begin and end."""

from __future__ import annotations

import abc
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.ledger import Ledger
from deep500.measure.metric import TestMetric

__all__ = ["DistributedTrainingMetric", "distributed_optimizer", "not_begun", "uncounted"]


class DistributedTrainingMetric(TestMetric):
    """A metric around a distributed training: it is told of its optimizer when it begins, and again when it ends."""

    _optimizer: DistributedOptimizer | None = None

    @property
    def requires_outputs(self) -> bool:
        """False: what it needs has the optimizer."""
        return False

    def begin(self, inputs: Any) -> None:
        """Begin a run.

        Args:
            inputs: The trainer, or its optimizer.

        Raises:
            MeasurementError: The training is not distributed.
        """
        optimizer = distributed_optimizer(self.name, inputs)
        self._begun(optimizer)
        self._optimizer = optimizer

    def end(self, outputs: Any) -> None:
        """End a run; a collective operation.

        Raises:
            MeasurementError: The run was not begun.
        """
        optimizer, self._optimizer = self._optimizer, None
        if optimizer is None:
            raise not_begun(self.name)
        self._ended(optimizer)

    def _begun(self, optimizer: DistributedOptimizer) -> None:
        """Note what is so before the run."""

    @abc.abstractmethod
    def _ended(self, optimizer: DistributedOptimizer) -> None:
        """Measure the run, on all ranks together."""


def not_begun(metric: str) -> MeasurementError:
    """Return the error of a metric that is told of the end of a run, but was not of its begin."""
    return MeasurementError(f"{metric} ends a run that was not begun; call begin before each run.")


def distributed_optimizer(metric: str, inputs: Any) -> DistributedOptimizer:
    """Return the distributed optimizer of a trainer, or one that was given itself.

    Args:
        metric: Name of the metric that asks, for the message.
        inputs: A trainer, or an optimizer.

    Raises:
        MeasurementError: The training is not distributed.
    """
    found = inputs if isinstance(inputs, DistributedOptimizer) else getattr(inputs, "optimizer", None)
    if not isinstance(found, DistributedOptimizer):
        raise MeasurementError(
            f"{metric} is of distributed trainings; received {shown(inputs if found is None else found)}. Accepted is "
            "a trainer whose optimizer is a DistributedOptimizer: run the recipe with --ranks, or give it the key "
            "'distributed'."
        )
    return found


def uncounted(optimizer: DistributedOptimizer) -> Communicator:
    """Return a communicator of the same ranks whose bytes are not those of the training; all ranks ask for it."""
    apart = optimizer.communicator.split(0, optimizer.communicator.rank)
    assert apart is not None  # all ranks name the same color
    apart.ledger = Ledger()
    return apart
