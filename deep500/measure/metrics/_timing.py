"""What the metrics that read the clock have in common."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.measure.clock import now_ns
from deep500.measure.metrics._reruns import RerunMetric

if TYPE_CHECKING:
    from deep500.measure.statistics.quantiles import Interval

__all__ = ["FEWEST_SAMPLES", "TimedMetric"]

#: Samples that an interval of the median needs.
FEWEST_SAMPLES = 6

#: Confidence of the intervals in summaries.
_CONFIDENCE = 0.95


class TimedMetric(RerunMetric):
    """Takes the time of each run, from ``begin`` to ``end``.

    What runs between an ``end`` and the next ``begin`` is not counted. Where the test runs on a device, it sets
    ``synchronize``, and the device has finished before each reading of the clock.
    """

    def __init__(self, reruns: int = 100, avg_over: int = 10) -> None:
        """Set how often the test is timed.

        Args:
            reruns: Number of runs of the test for this metric; 0 times the test's own run.
            avg_over: Number of consecutive runs whose mean is one sample. A last group of fewer runs counts too.

        Raises:
            InvalidInputError: A number is not a whole number, ``reruns`` is negative or ``avg_over`` is not positive.
        """
        super().__init__(reruns)
        self._avg_over = check_count("avg_over", avg_over, least=1)
        self._durations_ns: list[int] = []
        self._begin_ns: int | None = None
        self._earlier_ns = 0

    @property
    def durations_s(self) -> list[float]:
        """The time of each run in seconds, in order."""
        return [duration * 1e-9 for duration in self._durations_ns]

    @property
    def samples(self) -> list[float]:
        """All samples in seconds, in order: the mean duration of each group of ``avg_over`` runs."""
        size = self._avg_over
        groups = (self._durations_ns[start : start + size] for start in range(0, len(self._durations_ns), size))
        return [sum(group) / len(group) * 1e-9 for group in groups]

    def go_on(self, earlier_s: float) -> None:
        """Count seconds of an earlier process to the next duration: those of a run that goes on from a checkpoint."""
        self._earlier_ns = round(earlier_s * 1e9)

    def begin(self, inputs: Any = None) -> None:
        """Wait for the device and read the clock. A begin without an end, because the run failed, is forgotten."""
        if self.synchronize is not None:
            self.synchronize()
        self._begin_ns = now_ns()

    def end(self, outputs: Any = None) -> None:
        """Wait for the device, read the clock and keep the duration.

        Raises:
            InvalidInputError: There was no begin.
        """
        if self.synchronize is not None:
            self.synchronize()
        end_ns = now_ns()
        if self._begin_ns is None:
            raise InvalidInputError(f"{self.name} was told the end of a run that it was not told the begin of.")
        self._durations_ns.append(end_ns - self._begin_ns + self._earlier_ns)
        self._begin_ns, self._earlier_ns = None, 0

    def median_s(self) -> float:
        """Return the median of the samples in seconds.

        Raises:
            InvalidInputError: Nothing was timed.
        """
        self.check_timed()
        return statistics.median(self.samples)

    def median_interval(self) -> Interval | None:
        """Return the median's exact interval within this process, in seconds; ``None`` of fewer than 6 samples.

        It says nothing of other process launches, which differ by more.
        """
        samples = self.samples
        if len(samples) < FEWEST_SAMPLES:
            return None
        from deep500.measure.statistics.quantiles import quantile_interval  # SciPy, which few runs come to need

        return quantile_interval(samples, 0.5, _CONFIDENCE)

    def check_timed(self) -> None:
        """Check that there is something to measure.

        Raises:
            InvalidInputError: Nothing was timed.
        """
        if not self._durations_ns:
            raise InvalidInputError(f"{self.name} has timed nothing yet. Call begin and end around what is timed.")

    def described_samples(self) -> str:
        """Return what the samples are, such as ``"100"`` or ``"10 means of 10 runs"``."""
        count = len(self.samples)
        if self._avg_over == 1:
            return str(count)
        whole = len(self._durations_ns) % self._avg_over == 0
        return f"{count} means of {'' if whole else 'up to '}{self._avg_over} runs"
