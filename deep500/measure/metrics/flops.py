"""Counted floating-point operations."""

from __future__ import annotations

from typing import Any

from deep500.core.quantities import scaled
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.measure.metrics._work import count_flops

__all__ = ["FLOPs"]


class FLOPs(TestMetric):
    """Floating-point operations of one run, counted from what it computes, not measured.

    The count is deterministic: no run changes it, so it has no interval. What counts as one operation is for whoever
    counted to say; :func:`deep500.networks.flops.count_flops` does for networks.

    Example:
        >>> FLOPs(2 * 128**3).measure_summary()
        '4.194 Mflop (counted)'
    """

    unit = "flop"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, work: Any = None) -> None:
        """Count the operations.

        Args:
            work: The operations of one run as a number, or what counts them: an object with a method ``flops()``, such
                as a ``Network``, or a workload's :class:`~deep500.measure.workload.Work`.

        Raises:
            InvalidInputError: It is none of these, or the work does not know its operations.
        """
        self._flops = count_flops(work)

    @property
    def requires_inputs(self) -> bool:
        """False: nothing is measured."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False: nothing is measured."""
        return False

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the number of operations."""
        return self._flops

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the number in the thousands that suit its size."""
        return f"{scaled(self.unit, self._flops)[0]} (counted)"
