"""Broadcast down a binomial tree."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation._parts import levels_above, ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["binomial_tree_broadcast"]


def binomial_tree_broadcast(size: int, count: int, item_bytes: int = 4, root: int = 0) -> Schedule:
    """Send the root's vector to ranks ``2**(k-1)``, ..., 2, 1 apart, each of which sends on: ``ceil(log2 p)`` steps.

    Source: R. Thakur, R. Rabenseifner, W. Gropp 2005, section 4.2.
    """

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        for level in reversed(range(levels_above(size))):
            senders = numbers[(numbers % (2 << level) == 0) & (numbers + (1 << level) < size)]
            receivers = senders + (1 << level)
            yield Phase((Round.of((senders + root) % size, (receivers + root) % size, 0, count),), Action.COPY)

    return Schedule("binomial_tree_broadcast", size, count, item_bytes, phases)
