"""Throughput."""

from __future__ import annotations

import math
from typing import Any

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.quantities import significant
from deep500.core.texts import shown
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics._timing import TimedMetric
from deep500.measure.workload import Work

__all__ = ["Throughput"]


class Throughput(TimedMetric):
    r"""Items a second, over all runs: the items of all runs over the time of all runs.

    With :math:`m` items in each of :math:`n` runs that took :math:`t_i`, the value is

    .. math:: \frac{n m}{\sum_i t_i} = \frac{m}{\bar t} = \frac{n}{\sum_i 1 / r_i} \quad\text{with}\quad r_i = m / t_i,

    which is the harmonic mean of the runs' rates; their arithmetic mean would be too high. Slow runs count in full, as
    they do for whoever waits for all items. The metric times runs of its own, device-synchronised like
    :class:`~deep500.measure.metrics.wallclock_time.WallclockTime`.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rule 3.

    Attributes:
        items: Items of one run.
        unit: Such as ``"samples/s"``.
    """

    direction = Direction.HIGHER
    kind = MetricKind.RATE

    def __init__(
        self, items: float | Work = 1, *, item: str | None = None, reruns: int = 100, avg_over: int = 10
    ) -> None:
        """Say how much one run treats.

        Args:
            items: Items of one run, or a workload's :class:`~deep500.measure.workload.Work` that says it.
            item: What an item is, in the singular, for the unit; by default what the work says, else ``"item"``.
            reruns: Number of runs of the test for this metric; 0 times the test's own run.
            avg_over: Number of consecutive runs that one sample of the summary's median covers.

        Raises:
            InvalidInputError: The items are not a positive number, or another argument is not accepted.
        """
        super().__init__(reruns, avg_over)
        count = items.items if isinstance(items, Work) else items
        if isinstance(count, bool) or not isinstance(count, (int, float)) or not 0 < count < math.inf:
            raise InvalidInputError(
                f"The items of one run were given as {shown(items)}; accepted are positive numbers, and a Work that "
                "knows its items."
            )
        name = item if item is not None else items.item if isinstance(items, Work) else "item"
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"An item was named {shown(item)}; accepted are texts such as 'sample'.")
        self.items = float(count)
        self.unit = f"{name}s/s"

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the items a second over all runs.

        Raises:
            InvalidInputError: Nothing was timed.
            MeasurementError: The clock did not move during the runs.
        """
        self.check_timed()
        durations_s = self.durations_s
        total_s = math.fsum(durations_s)
        if total_s <= 0:
            raise MeasurementError(
                f"The clock did not move during {len(durations_s)} runs, so that they have no throughput; let one run "
                "do more."
            )
        return self.items * len(durations_s) / total_s

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the value, how it was made, and the rate of the median run with its exact interval where there is one.

        A mean has no interval that holds without a normal distribution, so the interval is the median's.
        """
        runs = len(self.durations_s)
        text = f"{significant(self.measure())} {self.unit}"
        if runs == 1:
            return text
        how = f"items over the mean time of {runs} runs"
        interval = self.median_interval()
        if interval is None or interval.low <= 0:
            return f"{text} ({how})"
        rate, low, high = (self.items / time_s for time_s in (interval.estimate, interval.high, interval.low))
        percent = f"{interval.confidence_requested * 100:.6g} %"
        at_median = f"{significant(rate)} [{significant(low)}, {significant(high)}]"
        return f"{text} ({how}; at the median {at_median}, in-process {percent} interval)"
