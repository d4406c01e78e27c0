"""One rank that all others send to and get the result from."""

from __future__ import annotations

from collections.abc import Iterator

from deep500.distributed.simulation.schedule import Action, Phase, Round, Schedule

__all__ = ["central_parameter_server"]


def central_parameter_server(size: int, count: int, item_bytes: int = 4, root: int = 0) -> Schedule:
    """All send their vectors to the root, which sends each of them the result: ``2 (p - 1) n`` elements at one rank.

    Source: M. Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014, with one server.
    """

    def phases() -> Iterator[Phase]:
        others = [(root + distance) % size for distance in range(1, size)]
        if others:
            yield Phase(tuple(Round.of([other], [root], 0, count) for other in others), Action.REDUCE)
            yield Phase(tuple(Round.of([root], [other], 0, count) for other in others), Action.COPY)

    return Schedule("central_parameter_server", size, count, item_bytes, phases)
