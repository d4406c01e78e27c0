"""How the ranks of a training agree: through a communicator of their own, so that no scheme's bytes are counted."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from deep500.distributed.communicator import Communicator, Work
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.ledger import Ledger
from deep500.distributed.scheme import Scheme
from deep500.training.optimizer import Optimizer
from deep500.training.ranks import Ranks

__all__ = ["CommunicatorRanks"]

_Result = TypeVar("_Result")


class CommunicatorRanks(Ranks):
    """The ranks of a communicator.

    What they agree on goes over a communicator that is split off, with a ledger of its own: the messages do not mix
    with those of a scheme, and the bytes of a training are those of its scheme alone.

    A scheme or optimizer with a ``finish()`` lets ranks run apart, and a rank may wait for rank 0 to serve it. There
    rank 0 sends what it decides between steps without waiting for anybody.

    Where a rank fails and the optimizer that is followed goes on without it, so do these ranks: what was being agreed
    on is agreed on by those that are left, and what was rank 0's is that of the first of them.

    Attributes:
        replicas_equal: Whether the optimizer that is followed keeps all ranks' parameters equal.

    Example:
        >>> from deep500.distributed.communicators.local import run_threads
        >>> run_threads(2, lambda communicator: CommunicatorRanks(communicator).gathered(communicator.rank))
        [[0, 1], [0, 1]]
    """

    def __init__(self, communicator: Communicator) -> None:
        """Agree with the other ranks of a communicator; all of them make one.

        Args:
            communicator: What carries the messages.
        """
        self._communicator = communicator
        self._optimizer: DistributedOptimizer | None = None
        self._own: Communicator | None = None
        self._of: tuple[Communicator, tuple[int, ...]] | None = None  # what the own one was split off
        self._sent: deque[Work] = deque()
        self._runs_apart = False

    @property
    def rank(self) -> int:  # type: ignore[override] # known only now
        """Number of this rank."""
        return self.communicator.rank

    @property
    def size(self) -> int:  # type: ignore[override] # known only now
        """Number of ranks; it becomes smaller where a training goes on without one that failed."""
        return self.communicator.size

    @property
    def members(self) -> tuple[int, ...]:  # type: ignore[override] # known only now
        """The ranks by the numbers that they started with."""
        return self.communicator.world_ranks

    @property
    def communicator(self) -> Communicator:
        """What carries the optimizer's messages; it may be another one after a rank has failed."""
        return self._communicator if self._optimizer is None else self._optimizer.communicator

    def follow(self, optimizer: DistributedOptimizer) -> None:
        """Be the ranks of an optimizer, whose ``ranks`` this becomes; on all ranks together.

        Args:
            optimizer: Made with the communicator.
        """
        self._optimizer = optimizer
        scheme, kind = optimizer.scheme, type(optimizer)
        has_own_step = kind.step is not DistributedOptimizer.step
        self.replicas_equal = scheme.keeps_replicas_equal and not has_own_step
        has_own_end = kind.finish not in (DistributedOptimizer.finish, Optimizer.finish)
        self._runs_apart = has_own_end or (not has_own_step and type(scheme).finish is not Scheme.finish)
        optimizer.ranks = self
        if self.size > 1 and self._runs_apart:
            self._exchange()  # now that no rank waits for another

    def decided(self, value: Any) -> Any:
        """Return the value of rank 0; see :meth:`Ranks.decided`."""
        return self._together(lambda: self._decided(value))

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all ranks; see :meth:`Ranks.gathered`."""
        return self._together(lambda: self._gathered(value))

    def decided_in_step(self, value: int) -> int:
        """Return the number of rank 0; see :meth:`Ranks.decided_in_step`."""
        return self._together(lambda: self._decided_in_step(value))

    def largest_in_step(self, value: int) -> int:
        """Return the largest number of all ranks; see :meth:`Ranks.largest_in_step`."""
        return self._together(lambda: self._largest_in_step(value))

    def _decided(self, value: Any) -> Any:
        if self.size == 1:
            return value
        own = self._exchange()
        self._wait_for_sent()
        message = np.frombuffer(json.dumps(value).encode(), np.uint8).copy()
        count = np.array([message.size], np.int64)
        own.broadcast(count)
        if self.rank != 0:
            message = np.empty(int(count[0]), np.uint8)
        own.broadcast(message)
        return value if self.rank == 0 else json.loads(message.tobytes())

    def _gathered(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        own = self._exchange()
        self._wait_for_sent()
        message = np.frombuffer(json.dumps(value).encode(), np.uint8)
        counts = np.empty(self.size, np.int64)
        own.allgather(np.array([message.size], np.int64), counts)
        padded = np.zeros(int(counts.max()), np.uint8)
        padded[: message.size] = message
        rows = np.empty(self.size * padded.size, np.uint8)
        own.allgather(padded, rows)
        return [
            json.loads(row[:count].tobytes()) for row, count in zip(rows.reshape(self.size, -1), counts, strict=True)
        ]

    def _decided_in_step(self, value: int) -> int:
        if self.size == 1:
            return value
        own = self._exchange()
        number = np.array([value], np.int64)
        if not self._runs_apart:
            own.broadcast(number)
        elif self.rank == 0:
            while self._sent and self._sent[0].test():
                self._sent.popleft()
            self._sent.extend(own.isend(number, other) for other in range(1, self.size))
        else:
            own.recv(number, 0)
        return int(number[0])

    def _largest_in_step(self, value: int) -> int:
        if self.size == 1:
            return value
        if self._runs_apart:
            return self._decided_in_step(value)
        number = np.array([value], np.int64)
        self._exchange().allreduce(number, "maximum")
        return int(number[0])

    def _together(self, action: Callable[[], _Result]) -> _Result:
        """Exchange something, and again with those that are left where a rank fails and the optimizer survives it."""
        return action() if self._optimizer is None else self._optimizer.together(action, changes=False)

    def _exchange(self) -> Communicator:
        """Return the communicator of what is agreed on; all ranks make it together when they first need it."""
        communicator = self.communicator
        of = (communicator, communicator.world_ranks)
        if self._own is None or self._of != of:
            self._own = communicator.split(0, communicator.rank)
            assert self._own is not None  # all ranks name the same group
            self._own.ledger = Ledger()
            self._of = of
            self._sent.clear()
        return self._own

    def _wait_for_sent(self) -> None:
        """Wait until all have what rank 0 sent between steps; they all come here now."""
        while self._sent:
            self._sent.popleft().wait()
