"""Reduce-scatter, each pair of ranks by itself."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import equal_block, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["pairwise_reduce_scatter"]


def pairwise_reduce_scatter(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Send to the ranks 1, 2, ... further on the block that they will hold: ``p - 1`` steps of ``n / p`` elements.

    Afterwards block ``r`` of rank ``r`` is the reduction; its other blocks are what they were.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.3 (pairwise exchange).

    Args:
        size: Number of ranks.
        count: Elements of the whole vector, a multiple of ``size``.
        item_bytes: Bytes of an element.
    """
    block = equal_block(size, count)

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for distance in range(1, size):
            receivers = (numbers + distance) % size
            yield Phase((Round.of(numbers, receivers, receivers * block, (receivers + 1) * block),), Action.REDUCE)

    return Schedule("pairwise_reduce_scatter", size, count, item_bytes, phases)
