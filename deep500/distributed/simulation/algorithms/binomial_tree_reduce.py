"""Reduction up a binomial tree."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import levels_above, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["binomial_tree_reduce"]


def binomial_tree_reduce(size: int, count: int, item_bytes: int = 4, root: int = 0) -> Schedule:
    """Combine vectors of ranks 1, 2, 4... apart until the root has all: ``ceil(log2 p)`` steps.

    The other ranks' buffers hold partial results afterwards.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.4.
    """

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for level in range(levels_above(size)):
            receivers = numbers[(numbers % (2 << level) == 0) & (numbers + (1 << level) < size)]
            senders = receivers + (1 << level)
            yield Phase((Round.of((senders + root) % size, (receivers + root) % size, 0, count),), Action.REDUCE)

    return Schedule("binomial_tree_reduce", size, count, item_bytes, phases)
