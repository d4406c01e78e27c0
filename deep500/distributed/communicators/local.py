"""Ranks in one process: a single one, or threads of which each is a rank."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.core.texts import message_of, shown
from deep500.distributed._work import Call, Capabilities, Work
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators._thread_exchange import SPLIT, Meeting, Message, ThreadExchange, ThreadWork
from deep500.distributed.ledger import Ledger
from deep500.distributed.rank_options import checked_timeout

__all__ = ["LocalCommunicator"]

Result = TypeVar("Result")

_CAPABILITIES = Capabilities(thread_safe=False, nonblocking=False)


class LocalCommunicator(Communicator):
    """One rank of one, or one of the thread ranks that :func:`run_threads` starts.

    Results are combined in order of ranks, so they are the same in every run. A message is copied when both sides are
    there: ``send`` returns when the receiver has it, and a program that relies on buffered sends is found out.
    """

    def __init__(
        self,
        rank: int = 0,
        exchange: ThreadExchange | None = None,
        *,
        ledger: Ledger | None = None,
        world_ranks: Sequence[int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Take part in an exchange; by default the one of a single rank.

        Args:
            rank: Number of this rank.
            exchange: Where the ranks meet.
            ledger: A ledger to go on with.
            world_ranks: Number of each rank in the world, where this communicator was split off.
            timeout_s: After how long a peer that does not answer is an error.
        """
        self._exchange = ThreadExchange(1) if exchange is None else exchange
        super().__init__(
            rank, self._exchange.size, _CAPABILITIES, ledger=ledger, world_ranks=world_ranks, timeout_s=timeout_s
        )

    def split(self, color: int | None, key: int = 0) -> LocalCommunicator | None:
        """Return a communicator of the thread ranks that name the same color, ordered by key and then rank."""
        self._check_split(color, key)
        wish = np.array([color is not None, color or 0, key], np.int64)
        meeting = self._exchange.meet(self.rank, Call(SPLIT, wish))
        ThreadWork(self._exchange, [meeting], self._what(SPLIT), self.timeout_s).wait()
        if self.rank not in meeting.groups:
            return None
        group, place, members = meeting.groups[self.rank]
        world = [self.world_ranks[member] for member in members]
        part = LocalCommunicator(place, group, ledger=self.ledger, world_ranks=world, timeout_s=self.timeout_s)
        part.algorithms.update(self.algorithms)
        part.local_rank = self.local_rank
        return part

    def abort(self, message: str) -> NoReturn:
        """End the exchange: the other thread ranks get an error at their next call, this one at once."""
        reason = f"rank {self.world_ranks[self.rank]} called abort: {message}"
        self._exchange.stop(reason)
        raise CommunicationError(reason)

    def _start(self, call: Call) -> Work:
        exchange, rank = self._exchange, self.rank
        if call.operation == "send":
            return self._work(call, exchange.send(rank, call))
        if call.operation == "recv":
            return self._work(call, exchange.receive(rank, call, call.buffer))
        if call.operation == "isendrecv" and call.other is not None:
            return self._work(call, exchange.receive(rank, call, call.other), exchange.send(rank, call))
        return self._work(call, exchange.meet(rank, call))

    def _work(self, call: Call, *parts: Meeting | Message) -> ThreadWork:
        return ThreadWork(self._exchange, list(parts), self._what(call.operation), self.timeout_s)

    def _what(self, operation: str) -> str:
        return f"{operation} on rank {self.world_ranks[self.rank]}"


def run_threads(
    count: int, function: Callable[[LocalCommunicator], Result], *, timeout_s: float | None = 60.0
) -> list[Result]:
    """Run a function once a rank, each in a thread of its own with a communicator of its own.

    Args:
        count: Number of ranks.
        function: Called with the communicator.
        timeout_s: After how long a rank that waits for another raises an error.

    Returns:
        What the function returned on each rank.

    Raises:
        CommunicationError: Ranks did not match, or an argument is not accepted; any other error of the function is
            raised as it is, that of the rank that failed first, and ends the other ranks.

    Example:
        >>> def add(communicator):
        ...     buffer = np.array([communicator.rank + 1.0])
        ...     communicator.allreduce(buffer)
        ...     return buffer[0]
        >>> run_threads(3, add)
        [np.float64(6.0), np.float64(6.0), np.float64(6.0)]
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise CommunicationError(f"Received {count!r} as number of ranks. Accepted are whole numbers from 1.")
    if not callable(function):
        raise CommunicationError(
            f"Received {shown(function)} as what each rank does. Accepted is a function of a communicator."
        )
    checked_timeout(timeout_s)
    exchange = ThreadExchange(count)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            results[rank] = function(LocalCommunicator(rank, exchange, timeout_s=timeout_s))
        except BaseException as error:  # noqa: BLE001, RUF100 - it is raised again in the caller's thread
            failures.append(error)
            exchange.stop(f"rank {rank} failed: {type(error).__name__}: {message_of(error)}")

    threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(count)]
