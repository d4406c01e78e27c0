"""Each rank with its neighbours on a graph that looks the same from every rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deep500.distributed.simulation._parts import ranks
from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["neighbour_exchange"]


def neighbour_exchange(size: int, count: int, item_bytes: int = 4, offsets: Sequence[int] = (1, -1)) -> Schedule:
    """Send one's vector to the ranks at some offsets, all at once: ``d n`` elements from each of ``d`` neighbours.

    The default is a ring. Offsets that name the same rank, as both of two ranks' do, count once, and the rank itself
    does not.

    Source: X. Lian et al., "Can decentralized algorithms outperform centralized algorithms?", NeurIPS 2017 (D-PSGD).

    Args:
        size: Number of ranks.
        count: Elements of the vector.
        item_bytes: Bytes of an element.
        offsets: Where the neighbours are, modulo ``size``; powers of two make an exponential graph.
    """
    distances = list(dict.fromkeys(offset % size for offset in offsets if offset % size))

    def phases() -> Iterator[Phase]:
        numbers = ranks(size)
        rounds = (Round.of(numbers, (numbers + distance) % size, 0, count) for distance in distances)
        yield Phase(tuple(rounds), Action.DELIVER)

    return Schedule("neighbour_exchange", size, count, item_bytes, phases)
