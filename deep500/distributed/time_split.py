"""The time of distributed steps, split into what ranks compute, exchange, wait for the exchange and for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.quantiles import Interval, quantile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.communicator import Communicator

__all__ = ["RankTimes", "StepTimes", "TimeSplit"]


@dataclass(frozen=True)
class StepTimes:
    """One rank's times in one step, in seconds.

    Attributes:
        compute_s: Of forward and backward pass and update.
        exchange_s: From the start of the first exchange to the end of the last, less where none was under way.
        exposed_s: In which the rank waited for an exchange and computed nothing.
    """

    compute_s: float
    exchange_s: float
    exposed_s: float


@dataclass(frozen=True)
class RankTimes:
    """Medians over steps of one rank, with their intervals.

    Attributes:
        rank: The rank.
        compute_s: What it computed.
        exchange_s: How long exchanges were under way.
        exposed_s: How long it waited for exchanges.
        imbalance_s: How much less it computed in a step than the slowest rank: that much of its waiting is for others.
    """

    rank: int
    compute_s: Interval
    exchange_s: Interval
    exposed_s: Interval
    imbalance_s: Interval


class TimeSplit:
    """Times of steps by rank.

    Example:
        >>> split = TimeSplit()
        >>> for _ in range(6):
        ...     split.record([StepTimes(2.0, 1.0, 0.5), StepTimes(1.0, 1.0, 1.5)])
        >>> [rank.imbalance_s.estimate for rank in split.by_rank()]
        [0.0, 1.0]
    """

    def __init__(self) -> None:
        """Start without steps."""
        self._rows: list[NDArray[np.float64]] = []

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self._rows)

    def record(self, ranks: Sequence[StepTimes]) -> None:
        """Add a step: the times of each rank.

        Raises:
            MeasurementError: The number of ranks differs from the steps before, or a time is negative or not finite.
        """
        row = np.array([[times.compute_s, times.exchange_s, times.exposed_s] for times in ranks])
        is_as_before = not self._rows or row.shape == self._rows[0].shape
        if not is_as_before or not len(row) or not (np.isfinite(row) & (row >= 0)).all():
            raise MeasurementError(
                f"Received a step's times {row.tolist()} (compute, exchange, exposed of each rank). Accepted are times "
                f"that are finite and not negative, of as many ranks in each step."
            )
        self._rows.append(row)

    def add(self, other: TimeSplit) -> None:
        """Add the steps of another split of the same ranks."""
        for row in other._rows:
            self.record([StepTimes(*times) for times in row.tolist()])

    def record_own(self, times: StepTimes, communicator: Communicator) -> None:
        """Add a step, each rank giving its own times; a collective operation."""
        own = np.array([times.compute_s, times.exchange_s, times.exposed_s])
        everyone = np.empty(3 * communicator.size)
        communicator.allgather(own, everyone)
        self.record([StepTimes(*row) for row in everyone.reshape(-1, 3).tolist()])

    @classmethod
    def gathered(cls, own: Sequence[StepTimes], communicator: Communicator) -> TimeSplit:
        """Return the split of steps of which each rank has its own times; a collective operation.

        Where ranks made different numbers of steps, the first ones count that all have made.
        """
        count = np.array([len(own)], np.int64)
        communicator.allreduce(count, "minimum")
        rows = np.array([[times.compute_s, times.exchange_s, times.exposed_s] for times in own[: int(count[0])]])
        split = cls()
        if len(rows):
            everyone = np.empty(communicator.size * rows.size)
            communicator.allgather(rows.reshape(-1), everyone)
            for step in everyone.reshape(communicator.size, -1, 3).swapaxes(0, 1).tolist():
                split.record([StepTimes(*row) for row in step])
        return split

    def times_s(self) -> NDArray[np.float64]:
        """Return compute, exchange and exposed exchange of all steps, ``[step, rank, 3]``.

        Raises:
            MeasurementError: No step was recorded.
        """
        return self._table()

    def imbalance_s(self) -> NDArray[np.float64]:
        """Return how much less each rank computed than the slowest, ``[step, rank]``."""
        compute = self._table()[:, :, 0]
        return np.asarray(compute.max(axis=1, keepdims=True) - compute)

    def by_rank(self, confidence: float = 0.95) -> list[RankTimes]:
        """Return the medians of each rank with intervals of this confidence.

        Raises:
            MeasurementError: There are too few steps for such intervals; the message says how many are needed.
        """
        table, imbalance = self._table(), self.imbalance_s()
        return [
            RankTimes(rank, *(quantile_interval(samples, 0.5, confidence) for samples in (*table[:, rank].T, waiting)))
            for rank, waiting in enumerate(imbalance.T)
        ]

    def medians_s(self) -> NDArray[np.float64]:
        """Return the medians over steps of compute, exchange and exposed exchange, ``[rank, 3]``.

        Raises:
            MeasurementError: No step was recorded.
        """
        return np.asarray(np.median(self._table(), axis=0))

    def _table(self) -> NDArray[np.float64]:
        if not self._rows:
            raise MeasurementError("No step was recorded; record each step's times first.")
        return np.stack(self._rows)
