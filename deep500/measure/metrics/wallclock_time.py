"""Wall-clock time."""

from __future__ import annotations

import statistics
import time
from typing import Any

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind, TestMetric

__all__ = ["WallclockTime"]


class WallclockTime(TestMetric):
    """Seconds from :meth:`begin` to :meth:`end`; the value is the median of the samples.

    The clock is ``time.perf_counter_ns``. What runs between an ``end`` and the next ``begin`` is not counted. On an
    accelerator, the test must wait for the device before it calls ``end``.
    """

    unit = "s"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, reruns: int = 100, avg_over: int = 10) -> None:
        """Set how often the test is timed.

        Args:
            reruns: Number of runs of the test for this metric; 0 times the test's own run.
            avg_over: Number of consecutive runs whose mean is one sample. A last group of fewer runs counts too.

        Raises:
            InvalidInputError: A number is not a whole number, ``reruns`` is negative or ``avg_over`` is not positive.
        """
        for name, value, least in (("reruns", reruns, 0), ("avg_over", avg_over, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInputError(f"{name} was given as {value!r}; accepted are whole numbers from {least}.")
        self._reruns = reruns
        self._avg_over = avg_over
        self._durations_ns: list[int] = []
        self._begin_ns: int | None = None

    @property
    def reruns(self) -> int:
        """Number of runs of the test for this metric."""
        return self._reruns

    @property
    def requires_inputs(self) -> bool:
        """False: time does not depend on what went in."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False: time does not depend on what came out."""
        return False

    @property
    def samples(self) -> list[float]:
        """All samples in seconds, in order: the mean duration of each group of ``avg_over`` runs."""
        size = self._avg_over
        groups = (self._durations_ns[start : start + size] for start in range(0, len(self._durations_ns), size))
        return [sum(group) / len(group) * 1e-9 for group in groups]

    def begin(self, inputs: Any = None) -> None:
        """Read the clock. A begin that no end followed, because the run failed, is forgotten."""
        self._begin_ns = time.perf_counter_ns()

    def end(self, outputs: Any = None) -> None:
        """Read the clock and keep the duration.

        Raises:
            InvalidInputError: There was no begin.
        """
        now_ns = time.perf_counter_ns()
        if self._begin_ns is None:
            raise InvalidInputError("WallclockTime was told the end of a run that it was not told the begin of.")
        self._durations_ns.append(now_ns - self._begin_ns)
        self._begin_ns = None

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        """Return the median of the samples in seconds.

        Raises:
            InvalidInputError: Nothing was timed.
        """
        if not self._durations_ns:
            raise InvalidInputError("WallclockTime has timed nothing yet. Call begin and end around what is timed.")
        return statistics.median(self.samples)

    def measure_summary(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> str:
        """Return the median in the unit that suits its size."""
        seconds = self.measure()
        for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
            if seconds >= size:
                return f"{seconds / size:.4g} {unit}"
        return f"{seconds * 1e9:.4g} ns"
