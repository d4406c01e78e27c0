"""A barrier by dissemination."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import levels_above, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["dissemination_barrier"]


def dissemination_barrier(size: int, count: int = 1, item_bytes: int = 1) -> Schedule:
    """Signal the ranks 1, 2, 4... further on: ``ceil(log2 p)`` steps, each with a message of one byte.

    Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", International Journal of
    Parallel Programming 17(1), 1988.
    """

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for level in range(levels_above(size)):
            yield Phase((Round.of(numbers, (numbers + (1 << level)) % size, 0, count),), Action.DELIVER)

    return Schedule("dissemination_barrier", size, count, item_bytes, phases)
