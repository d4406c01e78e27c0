"""Wall-clock time."""

from __future__ import annotations

from typing import Any

from deep500.core.quantities import scaled
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics._timing import FEWEST_SAMPLES, TimedMetric

__all__ = ["WallclockTime"]


class WallclockTime(TimedMetric):
    """Seconds from the begin of a run to its end; the value is the median of the samples.

    The clock is monotonic (:data:`deep500.measure.clock.now_ns`). What runs between an ``end`` and the next ``begin``
    is not counted. Where the test runs on a device, it sets ``synchronize``, which is called before each reading.

    Example:
        >>> metric = WallclockTime(reruns=6, avg_over=1)
        >>> for _ in range(metric.reruns):
        ...     metric.begin()
        ...     metric.end()
        >>> metric.measure() > 0
        True
    """

    unit = "s"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the median of the samples in seconds.

        Raises:
            InvalidInputError: Nothing was timed.
        """
        return self.median_s()

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the median in the unit that suits its size, with its exact interval where there are enough samples.

        Such as ``"2.31 ms [2.29, 2.35] (median of 100, in-process 95 % interval)"``. The interval is of this process;
        other launches differ by more, see :func:`deep500.measure.statistics.nested_interval`.
        """
        median = self.measure()
        interval = self.median_interval()
        if interval is not None:
            text, low, high = scaled(self.unit, median, interval.low, interval.high)
            percent = f"{interval.confidence_requested * 100:.6g} %"
            return f"{text} [{low}, {high}] (median of {self.described_samples()}, in-process {percent} interval)"
        (text,) = scaled(self.unit, median)
        if len(self.samples) > 1:
            return f"{text} (median of {self.described_samples()}; an interval needs {FEWEST_SAMPLES})"
        runs = len(self.durations_s)
        return text if runs == 1 else f"{text} (mean of {runs} runs)"
