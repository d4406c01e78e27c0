"""How old the parameters were for which gradients were computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import MeasurementError
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics._distributed_training import DistributedTrainingMetric, uncounted
from deep500.measure.metric import Direction, MetricKind

__all__ = ["Staleness"]


class Staleness(DistributedTrainingMetric):
    """Mean staleness of the gradients that were applied, with the histogram of all of them.

    The staleness of a gradient is the number of updates between the reading of the parameters that it was computed for
    and its own: 0 in synchronous training.

    Around a training it reads what the scheme tells (``scheme.staleness()``, of each gradient, on the rank that applies
    them); of a scheme that tells nothing every gradient is new. All ranks have the same histogram then.

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
        self._told_before: Counter[int] = Counter()

    def _begun(self, optimizer: DistributedOptimizer) -> None:
        self._told_before = _told(optimizer)

    def _ended(self, optimizer: DistributedOptimizer) -> None:
        own = _told(optimizer)
        own.subtract(self._told_before)
        self.add(_of_root(+own, optimizer))

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


def _told(optimizer: DistributedOptimizer) -> Counter[int]:
    """Return how stale the gradients were that this rank has applied, by what the scheme tells."""
    staleness = getattr(optimizer.scheme, "staleness", None)
    return Counter({0: optimizer.step_count} if staleness is None else staleness())


def _of_root(own: Counter[int], optimizer: DistributedOptimizer) -> dict[int, int]:
    """Return the histogram of rank 0, which serves where one rank does."""
    communicator = uncounted(optimizer)
    size = np.array([len(own)], np.int64)
    communicator.broadcast(size, root=0)
    table = np.zeros(2 * int(size[0]), np.int64)
    if communicator.rank == 0:
        table[:] = [number for entry in sorted(own.items()) for number in entry]
    communicator.broadcast(table, root=0)
    return {int(staleness): int(count) for staleness, count in table.reshape(-1, 2)}
