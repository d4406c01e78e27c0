"""Allreduce by recursive halving and doubling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deep500.distributed.simulation._parts import fold, folded_ranks, levels_below, ranks, unfold
from deep500.distributed.simulation.algorithms.recursive_doubling_allreduce import recursive_doubling_allreduce
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["rabenseifner_allreduce"]


def rabenseifner_allreduce(size: int, count: int, item_bytes: int = 4) -> Schedule:
    """Halve the vector until each rank holds the sum of its part, then double the parts: ``2 log2 p`` steps.

    Where there are fewer elements than parts it is recursive doubling, as in MPICH. Where the ranks are no power of
    two, the ones beyond it are folded onto others first and get the result last.

    Source: R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; R. Thakur et al. 2005,
    section 4.5.
    """
    levels = levels_below(size)
    if count < 1 << levels:
        whole_vectors = recursive_doubling_allreduce(size, count, item_bytes)
        return Schedule("rabenseifner_allreduce", size, count, item_bytes, whole_vectors.phases)

    def phases() -> Iterator[Phase]:
        yield from fold(size, count)
        members = folded_ranks(size)
        numbers = ranks(1 << levels)
        starts, lengths = np.zeros_like(numbers), np.full_like(numbers, count)
        held = [(starts, lengths)]
        for level in reversed(range(levels)):
            first = lengths // 2  # the second half is the longer one
            upper = (numbers >> level) & 1 == 1
            sent_starts, sent_lengths = np.where(upper, starts, starts + first), np.where(upper, first, lengths - first)
            partners = members[numbers ^ (1 << level)]
            yield Phase((Round.of(members, partners, sent_starts, sent_starts + sent_lengths),), Action.REDUCE)
            starts, lengths = np.where(upper, starts + first, starts), np.where(upper, lengths - first, first)
            held.append((starts, lengths))
        for level in range(levels):
            starts, lengths = held[levels - level]
            partners = members[numbers ^ (1 << level)]
            yield Phase((Round.of(members, partners, starts, starts + lengths),), Action.COPY)
        yield from unfold(size, count)

    return Schedule("rabenseifner_allreduce", size, count, item_bytes, phases)
