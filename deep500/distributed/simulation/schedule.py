"""Exchanges as schedules: who sends which elements to whom, and in which order."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import CommunicationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Action", "Phase", "Round", "Schedule", "check_exchange"]


class Action(enum.Enum):
    """What a receiver does with the elements that arrive."""

    REDUCE = "reduce"  #: combines them with its own at the same place
    COPY = "copy"  #: puts them at the same place of its own buffer
    DELIVER = "deliver"  #: keeps them apart from its own buffer


@dataclass(frozen=True, eq=False)
class Round:
    """Messages of which each rank sends at most one and receives at most one.

    Attributes:
        sources: The senders.
        destinations: The receivers.
        starts: First element of each message.
        stops: One past the last element of each message.
    """

    sources: NDArray[np.int64]
    destinations: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, sources: ArrayLike, destinations: ArrayLike, starts: ArrayLike, stops: ArrayLike) -> Round:
        """Make a round; single numbers stand for all messages, and messages without elements are not sent."""
        arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.int64) for x in (sources, destinations, starts, stops)))
        sent = arrays[3] > arrays[2]
        return cls(*(array[sent] for array in arrays))


@dataclass(frozen=True, eq=False)
class Phase:
    """Rounds whose messages all leave before any of the phase is waited for.

    Attributes:
        rounds: The messages, in the order in which ranks send and wait for them.
        action: What receivers do with them.
    """

    rounds: tuple[Round, ...]
    action: Action


@dataclass(frozen=True, eq=False)
class Schedule:
    """An exchange among ranks.

    Attributes:
        name: The algorithm.
        size: Number of ranks.
        count: Elements of the buffer that each rank has.
        item_bytes: Bytes of an element.
        make_phases: Makes the phases, one after the other; they are not held, since a ring of 1,024 ranks has two
            million messages.
    """

    name: str
    size: int
    count: int
    item_bytes: int
    make_phases: Callable[[], Iterator[Phase]]

    def __post_init__(self) -> None:
        """Check the numbers; see :func:`check_exchange`."""
        check_exchange(self.size, self.count, self.item_bytes)

    def phases(self) -> Iterator[Phase]:
        """Iterate over the phases, anew with each call."""
        return self.make_phases()

    def rounds(self) -> Iterator[Round]:
        """Iterate over the rounds of all phases."""
        return (round_ for phase in self.phases() for round_ in phase.rounds)

    def sent_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that each rank sends, ``[size]``."""
        return self._sums(lambda round_: round_.sources, lambda round_: round_.stops - round_.starts) * self.item_bytes

    def received_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that each rank receives, ``[size]``."""
        lengths = self._sums(lambda round_: round_.destinations, lambda round_: round_.stops - round_.starts)
        return lengths * self.item_bytes

    def messages(self) -> NDArray[np.int64]:
        """Return the number of messages that each rank sends, ``[size]``."""
        return self._sums(lambda round_: round_.sources, lambda round_: np.ones_like(round_.sources))

    def peer_bytes(self, rank: int) -> dict[int, int]:
        """Return the bytes that one rank sends to each of its peers."""
        bytes_to: dict[int, int] = {}
        for round_ in self.rounds():
            for place in np.flatnonzero(round_.sources == rank):
                peer, length = int(round_.destinations[place]), int(round_.stops[place] - round_.starts[place])
                bytes_to[peer] = bytes_to.get(peer, 0) + length * self.item_bytes
        return bytes_to

    def _sums(
        self, ranks: Callable[[Round], NDArray[np.int64]], values: Callable[[Round], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        totals = np.zeros(self.size, np.int64)
        for round_ in self.rounds():
            totals[ranks(round_)] += values(round_)  # each rank once in a round
        return totals


def check_exchange(size: int, count: int, item_bytes: int) -> None:
    """Check the numbers of an exchange.

    Raises:
        CommunicationError: There is no rank, no byte an element, or a negative number of elements.
    """
    if size < 1 or count < 0 or item_bytes < 1:
        raise CommunicationError(
            f"An exchange was asked for among {size} ranks of {count} elements of {item_bytes} bytes. Accepted are 1 "
            "rank or more, 0 elements or more, and 1 byte an element or more."
        )
