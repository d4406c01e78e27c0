"""Running a schedule on data: what every rank's buffer holds after the exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.schedule import Action, Schedule

__all__ = ["execute"]


def execute(
    schedule: Schedule, buffers: Sequence[NDArray[Any]], combine: Callable[..., Any] = np.add
) -> list[list[NDArray[Any]]]:
    """Exchange the elements of one buffer a rank, in place.

    Args:
        schedule: Who sends what to whom.
        buffers: One a rank, one-dimensional, of ``schedule.count`` elements.
        combine: Combines what is received with what is there: a ufunc such as ``numpy.add`` or ``numpy.maximum``.

    Returns:
        For each rank what was delivered beside its buffer, in order of arrival.

    Raises:
        CommunicationError: The number of buffers or of their elements is not the schedule's.
    """
    shapes = [buffer.shape for buffer in buffers]
    if shapes != [(schedule.count,)] * schedule.size:
        raise CommunicationError(
            f"{schedule.name} for {schedule.size} ranks received buffers of the shapes {shapes}. Accepted is one "
            f"buffer a rank of the shape ({schedule.count},)."
        )
    delivered: list[list[NDArray[Any]]] = [[] for _ in buffers]
    for phase in schedule.phases():
        # All messages of a phase leave before one of them changes a buffer.
        messages = [
            (destination, slice(start, stop), buffers[source][start:stop].copy())
            for round_ in phase.rounds
            for source, destination, start, stop in zip(
                round_.sources.tolist(), round_.destinations.tolist(), round_.starts.tolist(), round_.stops.tolist()
            )
        ]
        for destination, place, data in messages:
            target = buffers[destination]
            if phase.action is Action.DELIVER:
                delivered[destination].append(data)
            else:
                target[place] = combine(target[place], data) if phase.action is Action.REDUCE else data
    return delivered
