"""What the metrics of a distributed training share: finding its optimizer in what they are given."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.ledger import Ledger

__all__ = ["distributed_optimizer", "uncounted"]


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
