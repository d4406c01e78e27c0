"""How old the parameters were for which gradients were computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction, MetricKind, TestMetric

__all__ = ["Staleness"]


class Staleness(TestMetric):
    """Mean staleness of the gradients that were applied, with the histogram of all of them.

    The staleness of a gradient is the number of updates between the reading of the parameters that it was computed for
    and its own: 0 in synchronous training.

    Source: Q. Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013.

    Example:
        >>> staleness = Staleness()
        >>> staleness.record(read_at=0, applied_at=0)
        >>> staleness.record(read_at=0, applied_at=1)
        >>> dict(staleness.histogram), staleness.measure(None, None)
        ({0: 1, 1: 1}, 0.5)
    """

    unit = "updates"
    direction = Direction.LOWER
    kind = MetricKind.SCORE

    def __init__(self) -> None:
        """Start without a gradient."""
        self._counts: Counter[int] = Counter()

    @property
    def requires_inputs(self) -> bool:
        """False: it is told by :meth:`record`."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False: it is told by :meth:`record`."""
        return False

    @property
    def histogram(self) -> Mapping[int, int]:
        """Number of gradients by staleness, ascending."""
        return MappingProxyType(dict(sorted(self._counts.items())))

    @property
    def largest(self) -> int:
        """Largest staleness, which a stale-synchronous scheme bounds; 0 where there is none."""
        return max(self._counts, default=0)

    def record(self, read_at: int, applied_at: int) -> None:
        """Count one gradient.

        Args:
            read_at: Updates that the parameters it was computed for had seen.
            applied_at: Updates that the parameters it was applied to had seen.

        Raises:
            MeasurementError: It was applied before it was computed.
        """
        read = check_count("read_at", read_at, least=0, error=MeasurementError)
        applied = check_count("applied_at", applied_at, least=0, error=MeasurementError)
        if applied < read:
            raise MeasurementError(
                f"A gradient of parameters after {read} updates was applied to parameters after {applied}, which are "
                "older. Accepted is applied_at of read_at or more."
            )
        self._counts[applied - read] += 1

    def add(self, histogram: Mapping[int, int] | Iterable[tuple[int, int]]) -> None:
        """Add the histogram of another rank."""
        for staleness, count in dict(histogram).items():
            self._counts[check_count("staleness", staleness, least=0, error=MeasurementError)] += count

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the mean.

        Raises:
            MeasurementError: No gradient was recorded.
        """
        total = sum(self._counts.values())
        if not total:
            raise MeasurementError("Staleness was not measured: no gradient was recorded.")
        return sum(staleness * count for staleness, count in self._counts.items()) / total
