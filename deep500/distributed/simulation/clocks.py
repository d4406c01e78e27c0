"""A clock for each rank, moved by the messages of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.schedule import Action, Phase, Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.simulation.cost_model import CostModel

__all__ = ["Clocks", "MessageDelays"]

#: From the senders of a round to how much later each message arrives, in seconds.
MessageDelays = Callable[["NDArray[np.int64]"], "NDArray[np.float64]"]


class Clocks:
    """The time at each rank, in seconds, as messages move it.

    A send starts when the sender's processor and its outgoing link are free. A message streams into the receiver when
    its first byte is there and the incoming link is free; links serve messages in the order in which their rank waits
    for them. Outgoing and incoming link of a rank work at the same time.

    Attributes:
        model: What a message costs.
        now_s: The time at each rank, ``[size]``.
    """

    def __init__(self, model: CostModel, size: int, message_delays: MessageDelays | None = None) -> None:
        """Start all clocks at 0.

        Args:
            model: What a message costs.
            size: Number of ranks.
            message_delays: Further delays of messages; by default there are none.
        """
        self.model = model
        self.now_s: NDArray[np.float64] = np.zeros(size)
        self._message_delays = message_delays
        self._out_free_s: NDArray[np.float64] = np.zeros(size)
        self._in_free_s: NDArray[np.float64] = np.zeros(size)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.now_s)

    def advance(self, seconds: float | NDArray[np.float64], rank: int | None = None) -> None:
        """Let time pass, at one rank or at each; the seconds may differ by rank."""
        self.now_s[slice(None) if rank is None else rank] += seconds

    def wait_until(self, times_s: float | NDArray[np.float64]) -> None:
        """Move each clock to a time, unless it is later already."""
        np.maximum(self.now_s, times_s, out=self.now_s)

    def run(self, schedule: Schedule, members: Sequence[int] | None = None) -> float:
        """Let an exchange happen, each rank starting at its own time, and return the time when the last rank ends.

        Args:
            schedule: Who sends what to whom.
            members: The ranks that take part, where these are not all, in the order of the schedule's ranks.

        Raises:
            CommunicationError: The schedule is for another number of ranks.
        """
        numbers = np.arange(self.size, dtype=np.int64) if members is None else np.asarray(members, dtype=np.int64)
        if schedule.size != len(numbers):
            raise CommunicationError(
                f"A schedule for {schedule.size} ranks was run on the clocks of {len(numbers)}; both must be the same."
            )
        for phase in schedule.phases():
            self._run_phase(phase, schedule.item_bytes, numbers)
        return float(self.now_s[numbers].max())

    def send(self, sources: NDArray[np.int64], size_bytes: int) -> NDArray[np.float64]:
        """Let ranks send a message each, an empty one as one of a byte, and return when their first bytes arrive."""
        return self._send(sources, self._streaming_s(len(sources), size_bytes))

    def receive(self, destinations: NDArray[np.int64], size_bytes: int, first_byte_s: NDArray[np.float64]) -> None:
        """Let ranks wait for a message each, whose first byte arrives at a time."""
        self._receive(destinations, self._streaming_s(len(destinations), size_bytes), first_byte_s, 0.0)

    def _streaming_s(self, messages: int, size_bytes: int) -> NDArray[np.float64]:
        return self.model.streaming_s(np.full(messages, max(size_bytes, 1)))

    def _run_phase(self, phase: Phase, item_bytes: int, numbers: NDArray[np.int64]) -> None:
        sizes: list[NDArray[np.int64]] = [(round_.stops - round_.starts) * item_bytes for round_ in phase.rounds]
        streaming = [self.model.streaming_s(size) for size in sizes]
        arrivals = [self._send(numbers[round_.sources], busy) for round_, busy in zip(phase.rounds, streaming)]
        reduction = self.model.reduction_s_per_byte if phase.action is Action.REDUCE else 0.0
        for round_, size, busy, first_byte in zip(phase.rounds, sizes, streaming, arrivals):
            self._receive(numbers[round_.destinations], busy, first_byte, reduction * size)

    def _send(self, sources: NDArray[np.int64], streaming: NDArray[np.float64]) -> NDArray[np.float64]:
        begin = np.maximum(self.now_s[sources], self._out_free_s[sources])
        self.now_s[sources] = begin + self.model.overhead_s
        self._out_free_s[sources] = begin + self.model.gap_s + streaming
        arrival = begin + self.model.overhead_s + self.model.latency_s
        return arrival if self._message_delays is None else arrival + self._message_delays(sources)

    def _receive(
        self,
        destinations: NDArray[np.int64],
        streaming: NDArray[np.float64],
        first_byte: NDArray[np.float64],
        reduction: NDArray[np.floating[Any]] | float,
    ) -> None:
        begin = np.maximum(first_byte, self._in_free_s[destinations])
        self._in_free_s[destinations] = begin + self.model.gap_s + streaming
        there = np.maximum(self.now_s[destinations], begin + streaming)
        self.now_s[destinations] = there + self.model.overhead_s + reduction
