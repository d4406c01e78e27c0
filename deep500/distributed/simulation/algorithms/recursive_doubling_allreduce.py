"""Allreduce by recursive doubling."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import fold, folded_ranks, levels_below, ranks, unfold
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["recursive_doubling_allreduce"]


def recursive_doubling_allreduce(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Exchange whole vectors with partners 1, 2, 4... apart: ``log2 p`` steps of ``n`` elements.

    Where the ranks are no power of two, the ones beyond it are folded onto others first and get the result last.

    Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
    International Journal of High Performance Computing Applications 19(1), 2005, section 4.5.
    """

    def phases() -> Iterator[Phase]:
        yield from fold(size, count)
        members, levels = folded_ranks(size), levels_below(size)
        for level in range(levels):
            partners = members[ranks(1 << levels) ^ (1 << level)]
            yield Phase((Round.of(members, partners, 0, count),), Action.REDUCE)
        yield from unfold(size, count)

    return Schedule("recursive_doubling_allreduce", size, count, item_bytes, phases)
