"""Reduce-scatter along a ring."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import equal_block, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["ring_reduce_scatter"]


def ring_reduce_scatter(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Reduce blocks around the ring: ``p - 1`` steps of ``n / p`` elements.

    Afterwards block ``r`` of rank ``r`` is the reduction; its other blocks hold partial results.

    Source: P. Patarasuk, X. Yuan 2009, the first half of the ring allreduce.

    Args:
        size: Number of ranks.
        count: Elements of the whole vector, a multiple of ``size``.
        item_bytes: Bytes of an element.
    """
    block = equal_block(size, count)

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for step in range(size - 1):
            bounds = (numbers - 1 - step) % size * block
            yield Phase((Round.of(numbers, (numbers + 1) % size, bounds, bounds + block),), Action.REDUCE)

    return Schedule("ring_reduce_scatter", size, count, item_bytes, phases)
