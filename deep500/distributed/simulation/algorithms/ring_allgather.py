"""Allgather along a ring."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import equal_block, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["ring_allgather"]


def ring_allgather(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Pass the blocks around the ring: ``p - 1`` steps of ``n / p`` elements.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.1.

    Args:
        size: Number of ranks.
        count: Elements of the gathered vector, a multiple of ``size``; rank ``r`` brings block ``r``.
        item_bytes: Bytes of an element.
    """
    block = equal_block(size, count)

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for step in range(size - 1):
            bounds = (numbers - step) % size * block
            yield Phase((Round.of(numbers, (numbers + 1) % size, bounds, bounds + block),), Action.COPY)

    return Schedule("ring_allgather", size, count, item_bytes, phases)
