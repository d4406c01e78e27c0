"""Allreduce along a ring."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import chunk_bounds, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["ring_allreduce"]


def ring_allreduce(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Reduce chunks around the ring, then pass the sums around it: ``2 (p - 1)`` steps of ``n / p`` elements.

    Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
    Parallel and Distributed Computing 69(2), 2009.
    """

    def phases() -> Iterator[Phase]:
        bounds, numbers = chunk_bounds(count, size), ranks(size)
        following = (numbers + 1) % size
        for ahead, action in ((0, Action.REDUCE), (1, Action.COPY)):
            for step in range(size - 1):
                chunks = (numbers + ahead - step) % size
                yield Phase((Round.of(numbers, following, bounds[chunks], bounds[chunks + 1]),), action)

    return Schedule("ring_allreduce", size, count, item_bytes, phases)
