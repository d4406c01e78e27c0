"""Where the time of distributed steps goes, by rank."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import MeasurementError
from deep500.distributed.time_split import TimeSplit
from deep500.measure.metric import Direction, MetricKind, TestMetric

__all__ = ["ExposedExchange"]


class ExposedExchange(TestMetric):
    """Seconds a step in which a rank waits for the exchange: the largest of the ranks' medians.

    What goes into it is recorded in :attr:`split`, which has the other parts and the intervals of each rank.

    Attributes:
        split: Times of the steps by rank.
    """

    unit = "s"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, split: TimeSplit | None = None) -> None:
        """Measure a split that is recorded elsewhere; by default one of its own."""
        self.split = TimeSplit() if split is None else split

    @property
    def requires_inputs(self) -> bool:
        """False: it is recorded step by step."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False: it is recorded step by step."""
        return False

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the seconds.

        Raises:
            MeasurementError: No step was recorded.
        """
        if not self.split.steps:
            raise MeasurementError("ExposedExchange was not measured: no step was recorded in its split.")
        return float(self.split.medians_s()[:, 2].max())
