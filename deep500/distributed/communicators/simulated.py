"""Ranks that are not there: exchanges on a simulated clock, for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.core.texts import shown
from deep500.distributed._work import ANY_SOURCE, Call, Capabilities, Work
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators._simulated_network import SimulatedNetwork, SimulatedWork
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.ledger import Ledger
from deep500.distributed.simulation.cost_model import CostModel, LogGP
from deep500.distributed.simulation.delays import Disturbance

__all__ = ["SimulatedCommunicator"]

Result = TypeVar("Result")

_CAPABILITIES = Capabilities(thread_safe=False, nonblocking=True)

#: So many clocks take some hundred MB.
_MOST_RANKS = 1 << 24

#: A cluster's network: 25 us and 1.1 GB/s.
_DEFAULT_MODEL = LogGP(latency_s=25e-6, gap_s_per_byte=1 / 1.1e9)


class SimulatedCommunicator(Communicator):
    """One rank of many on a simulated network, with a clock that exchanges and :meth:`advance` move.

    Made by itself it stands for one of ``size`` ranks that all do the same: what it receives is what it sends, a sum is
    ``size`` times its buffer, and the clocks of all ranks are kept, so that 1,024 ranks cost no thread. Those that
    :func:`run_simulated` makes are thread ranks with data of their own.

    A started exchange goes on beside computation; those of one rank happen one after the other. Computation takes no
    time unless :meth:`advance` says so.

    Attributes:
        network: The clocks of all ranks.
    """

    def __init__(
        self,
        size: int = 1,
        model: CostModel | None = None,
        *,
        rank: int = 0,
        disturbance: Disturbance | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Stand for one of many ranks that do the same.

        Args:
            size: Number of ranks.
            model: What a message costs; by default 25 us and 1.1 GB/s.
            rank: Which of them.
            disturbance: What goes wrong; by default nothing.
            timeout_s: After how long a thread rank that waits for another raises an error.

        Raises:
            CommunicationError: There is no such rank.
        """
        are_whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (size, rank))
        if not are_whole or not 0 <= rank < size <= _MOST_RANKS:
            raise CommunicationError(
                f"Received rank {shown(rank)} of {shown(size)}. Accepted are whole numbers of ranks from 1 to "
                f"{_MOST_RANKS:,}, each of which has a clock, and a rank below it."
            )
        network = SimulatedNetwork(model or _DEFAULT_MODEL, size, disturbance)
        self._bind(rank, size, network, None, None, None, timeout_s)

    def _bind(
        self,
        rank: int,
        size: int,
        network: SimulatedNetwork,
        inner: LocalCommunicator | None,
        ledger: Ledger | None,
        world_ranks: Sequence[int] | None,
        timeout_s: float | None,
    ) -> None:
        super().__init__(rank, size, _CAPABILITIES, ledger=ledger, world_ranks=world_ranks, timeout_s=timeout_s)
        self.network = network
        self.stands_for_all = inner is None
        self._inner = inner
        self._calls = 0
        self._sent: list[Call] = []

    @classmethod
    def of_threads(cls, inner: LocalCommunicator, network: SimulatedNetwork, ledger: Ledger) -> SimulatedCommunicator:
        """Return a thread rank whose data go through a local communicator, on a network that the ranks share."""
        communicator = cls.__new__(cls)
        communicator._bind(inner.rank, inner.size, network, inner, ledger, inner.world_ranks, inner.timeout_s)
        return communicator

    @property
    def clock_s(self) -> float:
        """The time at this rank."""
        return float(self.network.computed_s[self.world_ranks[self.rank]])

    def advance(self, seconds: float) -> None:
        """Let this rank compute for a time, longer where the disturbance says so.

        By itself the rank stands for all, which compute as long, each with its own disturbance. One call is one step of
        the disturbance.
        """
        self.network.advance(seconds, None if self._inner is None else self.world_ranks[self.rank])

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of the ranks that name the same color.

        Raises:
            CommunicationError: The rank stands for all, which would name the same color.
        """
        if self._inner is None:
            raise CommunicationError(
                "A simulated rank that stands for all others cannot be split from them, since all would name the same "
                "color. Use run_simulated, whose ranks are threads."
            )
        part = self._inner.split(color, key)
        if part is None:
            return None
        group = SimulatedCommunicator.of_threads(part, self.network, self.ledger)
        group.algorithms.update(self.algorithms)
        return group

    def abort(self, message: str) -> NoReturn:
        """End the run with an error that says why."""
        if self._inner is not None:
            self._inner.abort(message)
        raise CommunicationError(f"Rank {self.rank} called abort: {message}")

    def _start(self, call: Call) -> Work:
        timed = self._time(call)
        if self._inner is not None:
            return SimulatedWork(self._inner._start(call), timed, self.timeout_s)
        source = self._mirror(call)
        return SimulatedWork(None, timed, self.timeout_s, source)

    def _time(self, call: Call) -> Callable[[int | None], None]:
        """Move the clocks by what a call sends, and return what moves this rank's own once it is done."""
        network, world = self.network, self.world_ranks
        me = world[self.rank]
        if call.operation in ("send", "recv", "isendrecv"):
            return self._time_message(call)
        self._calls += 1
        algorithm = f"{self.algorithms[call.operation]}_{call.operation}"
        is_gathered = call.operation == "allgather" and call.other is not None
        count, item_bytes = call.buffer.size, call.buffer.itemsize
        if is_gathered:
            count *= self.size
        if self._inner is None:
            network.exchange_all(algorithm, count, item_bytes, call.root)
            return lambda _: network.finish_all()
        key = (tuple(world), self._calls)
        network.join(key, me, world, algorithm, count, item_bytes, call.root)
        return lambda _: network.finish(key, me)

    def _time_message(self, call: Call) -> Callable[[int | None], None]:
        network, world, size = self.network, self.world_ranks, self.network.size
        # The one that stands for all sends, and gets, one message a rank: to and from the same distance.
        ranks = np.arange(size) if self._inner is None else np.array([world[self.rank]])
        me = world[self.rank]
        incoming = call.other if call.operation == "isendrecv" else call.buffer
        sent_s: Any = None
        if call.operation != "recv":
            sent_s = network.send(ranks, (world[call.destination] - me) % size, call.tag, call.buffer.nbytes)

        def finish(source: int | None) -> None:
            if sent_s is not None:
                network.finish_send(ranks, sent_s)
            if call.operation != "send" and incoming is not None:
                sender = world[call.source if source is None else source]
                network.receive(ranks, (me - sender) % size, call.tag, incoming.nbytes)

        return finish

    def _mirror(self, call: Call) -> int | None:
        """Do to the buffers what ranks that hold the same would do; return the source of a received message."""
        if call.operation in ("allreduce", "reduce", "reduce_scatter"):
            whole = call.buffer if call.other is None else call.buffer[self._block(call)]
            target: Any = call.buffer if call.other is None else call.other
            if call.operation == "reduce" and self.rank != call.root:
                return None
            if call.reduction == "sum":
                np.multiply(whole, self.size, out=target, casting="unsafe")
            elif call.reduction == "product":
                np.power(whole, self.size, out=target, casting="unsafe")
            else:
                target[...] = whole
        elif call.operation == "allgather" and call.other is not None:
            call.other[...] = np.tile(call.buffer, self.size)
        elif call.operation == "isendrecv" and call.other is not None:
            self._check_equal(call.buffer.nbytes, call.other.nbytes)
            call.other[...] = call.buffer
        elif call.operation == "send":
            self._sent.append(Call("send", call.buffer.copy(), destination=call.destination, tag=call.tag))
        elif call.operation == "recv":
            return self._receive_own(call)
        return None

    def _receive_own(self, call: Call) -> int:
        """Take what this rank has sent the same way: so has the rank that it receives from."""
        for sent in self._sent:
            source = (2 * self.rank - sent.destination) % self.size
            if sent.tag == call.tag and call.source in (source, ANY_SOURCE):
                self._check_equal(sent.buffer.nbytes, call.buffer.nbytes)
                self._sent.remove(sent)
                call.buffer[...] = sent.buffer
                return source
        raise CommunicationError(
            f"A simulated rank that stands for all others was to receive from rank {call.source} with the tag "
            f"{call.tag}, but no rank that does what it does has sent to it: it receives what it sent the same way "
            "before. Use run_simulated, whose ranks are threads, for ranks that do different things."
        )

    def _block(self, call: Call) -> slice:
        length = 0 if call.other is None else call.other.size
        return slice(self.rank * length, (self.rank + 1) * length)

    def _check_equal(self, sent: int, received: int) -> None:
        if sent != received:
            raise CommunicationError(
                f"A message of {sent} bytes was to be received in {received}. Accepted are messages of exactly the "
                "size of the receiver's buffer."
            )


def run_simulated(
    count: int,
    function: Callable[[SimulatedCommunicator], Result],
    model: CostModel | None = None,
    *,
    disturbance: Disturbance | None = None,
    timeout_s: float | None = 60.0,
) -> list[Result]:
    """Run a function once a rank, in threads that exchange real data and share simulated clocks.

    Args:
        count: Number of ranks.
        function: Called with the communicator.
        model: What a message costs; by default 25 us and 1.1 GB/s.
        disturbance: What goes wrong; by default nothing.
        timeout_s: After how long (really) a rank that waits for another raises an error.

    Returns:
        What the function returned on each rank.

    Example:
        >>> def add(communicator):
        ...     buffer = np.ones(1000, np.float32)
        ...     communicator.allreduce(buffer)
        ...     return f"{buffer[0]:g} after {communicator.clock_s * 1e6:.0f} us"
        >>> run_simulated(2, add)
        ['2 after 54 us', '2 after 54 us']
    """
    network = SimulatedNetwork(model or _DEFAULT_MODEL, count, disturbance)
    return run_threads(
        count,
        lambda inner: function(SimulatedCommunicator.of_threads(inner, network, Ledger())),
        timeout_s=timeout_s,
    )
