"""By how much the clocks of ranks differ, between bounds that always hold, and what that leaves of their arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import CommunicationError, MeasurementError
from deep500.measure.clock import now_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from deep500.distributed.communicator import Communicator

__all__ = ["ClockOffset", "arrival_leads_s", "measure_clock_offsets"]


@dataclass(frozen=True)
class ClockOffset:
    """How far a rank's clock is ahead of that of rank 0.

    Attributes:
        rank: The rank.
        low_s: It is at least this.
        high_s: It is at most this.
    """

    rank: int
    low_s: float
    high_s: float


def measure_clock_offsets(communicator: Communicator, round_trips: int = 32) -> list[ClockOffset]:
    r"""Return the bounds of all ranks' clocks against that of rank 0; a collective operation.

    Rank 0 reads :math:`t_0`, sends, and reads :math:`t_2` when the answer with the rank's own reading :math:`t_1` is
    there. The rank read between the two, so that its offset lies between :math:`t_1 - t_2` and :math:`t_1 - t_0`,
    however long messages take; over several round trips the largest lower and the least upper bound hold.

    Source: F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989.

    Args:
        communicator: All ranks.
        round_trips: Messages with each rank.
    """
    count = check_count("round_trips", round_trips, least=1, error=CommunicationError)
    bounds = np.zeros(2 * communicator.size)
    for peer in range(1, communicator.size):
        if communicator.rank == 0:
            bounds[2 * peer : 2 * peer + 2] = _bounds(communicator, peer, count)
        elif communicator.rank == peer:
            _answer(communicator, count)
    communicator.broadcast(bounds, root=0)
    return [ClockOffset(rank, *row) for rank, row in enumerate(bounds.reshape(-1, 2).tolist())]


def arrival_leads_s(
    arrivals_s: NDArray[np.float64], offsets: Sequence[ClockOffset]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return by how much each rank came before the last one, at least and at most, ``[step, rank]`` each.

    With arrivals :math:`a_r` on clocks that are ahead by :math:`o_r` it is
    :math:`\max_q (a_q - o_q) - (a_r - o_r)`, for all offsets within their bounds.

    Args:
        arrivals_s: When each rank arrived by its own clock, ``[step, rank]``.
        offsets: The bounds of all ranks' clocks.

    Raises:
        MeasurementError: There are not as many bounds as ranks.
    """
    if arrivals_s.ndim != 2 or arrivals_s.shape[1] != len(offsets):
        raise MeasurementError(
            f"Received arrivals of the shape {arrivals_s.shape} and the clocks of {len(offsets)} ranks. Accepted is "
            "one row of all ranks a step."
        )
    low = np.array([offset.low_s for offset in offsets])
    high = np.array([offset.high_s for offset in offsets])
    earliest, latest = arrivals_s - high, arrivals_s - low
    least, most = np.zeros_like(arrivals_s), np.zeros_like(arrivals_s)
    for rank in range(len(offsets) if len(offsets) > 1 else 0):
        least[:, rank] = np.delete(earliest, rank, axis=1).max(axis=1) - latest[:, rank]
        most[:, rank] = np.delete(latest, rank, axis=1).max(axis=1) - earliest[:, rank]
    return np.maximum(least, 0.0), np.maximum(most, 0.0)


def _bounds(communicator: Communicator, peer: int, count: int) -> tuple[float, float]:
    """Return the bounds of one rank, on rank 0."""
    reading = np.zeros(1, np.int64)
    low, high = -np.inf, np.inf
    for _ in range(count):
        sent = now_ns()
        communicator.send(reading, peer)
        communicator.recv(reading, peer)
        received = now_ns()
        low, high = max(low, (int(reading[0]) - received) * 1e-9), min(high, (int(reading[0]) - sent) * 1e-9)
    return float(low), float(high)


def _answer(communicator: Communicator, count: int) -> None:
    reading = np.zeros(1, np.int64)
    for _ in range(count):
        communicator.recv(reading, 0)
        reading[0] = now_ns()
        communicator.send(reading, 0)
