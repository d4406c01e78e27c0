"""Allgather, each pair of ranks by itself."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import equal_block, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["pairwise_allgather"]


def pairwise_allgather(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Send one's own block to the ranks 1, 2, ... further on: ``p - 1`` steps of ``n / p`` elements.

    Args:
        size: Number of ranks.
        count: Elements of the gathered vector, a multiple of ``size``; rank ``r`` brings block ``r``.
        item_bytes: Bytes of an element.
    """
    block = equal_block(size, count)

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for distance in range(1, size):
            bounds = numbers * block
            yield Phase((Round.of(numbers, (numbers + distance) % size, bounds, bounds + block),), Action.COPY)

    return Schedule("pairwise_allgather", size, count, item_bytes, phases)
