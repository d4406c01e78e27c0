"""The clocks that simulated ranks share: when each computes, and when its exchanges happen."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deep500.distributed._work import Work
from deep500.distributed.simulation.catalogue import ALGORITHMS
from deep500.distributed.simulation.clocks import Clocks
from deep500.distributed.simulation.delays import Disturbance
from deep500.distributed.simulation.schedule import Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.distributed.simulation.cost_model import CostModel

__all__ = ["SimulatedNetwork", "SimulatedWork"]

#: Algorithms that have a root.
_ROOTED = ("binomial_tree_broadcast", "binomial_tree_reduce", "central_parameter_server")

#: A collective operation: the ranks that take part, and its number among theirs.
Key = tuple[tuple[int, ...], int]


class SimulatedNetwork:
    """A time at which each rank computes, and one at which its exchanges happen, which go on beside it.

    Attributes:
        computed_s: The time at each rank.
    """

    def __init__(self, model: CostModel, size: int, disturbance: Disturbance | None = None) -> None:
        """Start all clocks at 0."""
        self._trouble = disturbance or Disturbance()
        self._clocks = Clocks(model, size, self._trouble.late_messages(size))
        self._lock = threading.Lock()
        self._steps = np.zeros(size, np.int64)
        self._joined: dict[Key, dict[int, float]] = {}
        self._ends: dict[Key, dict[int, float]] = {}
        self._arrivals: dict[tuple[int, int, int], deque[float]] = {}
        self.computed_s: NDArray[np.float64] = np.zeros(size)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.computed_s)

    def advance(self, seconds: float, rank: int | None) -> None:
        """Let one rank compute, or all (``None``)."""
        with self._lock:
            ranks = slice(None) if rank is None else slice(rank, rank + 1)
            step = int(self._steps[ranks][0])
            factors = self._trouble.compute_factors(len(self._steps), step)
            self._steps[ranks] += 1
            self.computed_s[ranks] += seconds * factors[ranks]

    def exchange_all(self, algorithm: str, count: int, item_bytes: int, root: int) -> None:
        """Let all ranks exchange at once."""
        with self._lock:
            self._clocks.wait_until(self.computed_s)
            self._clocks.run(_schedule(algorithm, self.size, count, item_bytes, root))

    def finish_all(self) -> None:
        """Let all ranks wait for their exchanges."""
        with self._lock:
            np.maximum(self.computed_s, self._clocks.now_s, out=self.computed_s)

    def join(
        self, key: Key, rank: int, members: Sequence[int], algorithm: str, count: int, item_bytes: int, root: int
    ) -> None:
        """Come to an exchange of some ranks; the last to come lets it happen."""
        with self._lock:
            joined = self._joined.setdefault(key, {})
            joined[rank] = float(self.computed_s[rank])
            if len(joined) < len(members):
                return
            del self._joined[key]
            starts = self._clocks.now_s.copy()
            for member, start in joined.items():
                starts[member] = max(starts[member], start)
            self._clocks.wait_until(starts)
            self._clocks.run(_schedule(algorithm, len(members), count, item_bytes, root), members)
            self._ends[key] = {member: float(self._clocks.now_s[member]) for member in members}

    def finish(self, key: Key, rank: int) -> None:
        """Let one rank wait for an exchange."""
        with self._lock:
            ends = self._ends[key]
            self.computed_s[rank] = max(self.computed_s[rank], ends.pop(rank))
            if not ends:
                del self._ends[key]

    def send(self, sources: NDArray[np.int64], distance: int, tag: int, size_bytes: int) -> NDArray[np.float64]:
        """Let ranks send a message each to the rank at a distance, and return when they have sent it."""
        with self._lock:
            clocks = self._clocks
            clocks.now_s[sources] = np.maximum(clocks.now_s[sources], self.computed_s[sources])
            for source, first_byte in zip(sources.tolist(), clocks.send(sources, size_bytes).tolist()):
                destination = (source + distance) % self.size
                self._arrivals.setdefault((source, destination, tag), deque()).append(first_byte)
            return clocks.now_s[sources]

    def finish_send(self, sources: NDArray[np.int64], ends_s: NDArray[np.float64]) -> None:
        """Let ranks wait until they have sent."""
        with self._lock:
            self.computed_s[sources] = np.maximum(self.computed_s[sources], ends_s)

    def receive(self, destinations: NDArray[np.int64], distance: int, tag: int, size_bytes: int) -> None:
        """Let ranks wait for a message each from the rank at a distance before them."""
        with self._lock:
            clocks, size = self._clocks, self.size
            clocks.now_s[destinations] = np.maximum(clocks.now_s[destinations], self.computed_s[destinations])
            keys = [((rank - distance) % size, rank, tag) for rank in destinations.tolist()]
            clocks.receive(destinations, size_bytes, np.array([self._arrivals[key].popleft() for key in keys]))
            self.computed_s[destinations] = clocks.now_s[destinations]


class SimulatedWork(Work):
    """An exchange whose data may move through another work, and whose time passes when it is waited for."""

    def __init__(
        self,
        inner: Work | None,
        timed: Callable[[int | None], None],
        timeout_s: float | None,
        source: int | None = None,
    ) -> None:
        """Take the work that moves data (``None`` where they have moved), and what moves the clock."""
        super().__init__(timeout_s)
        self._inner = inner
        self.source = source
        self.then(lambda: timed(self.source))

    def _wait(self, timeout_s: float | None) -> None:
        if self._inner is not None:
            self._inner.wait(timeout_s)
            self.source = self._inner.source

    def _poll(self) -> bool:
        if self._inner is None:
            return True
        is_done = self._inner.test()
        self.source = self._inner.source
        return is_done


def _schedule(algorithm: str, size: int, count: int, item_bytes: int, root: int) -> Schedule:
    make = ALGORITHMS.get(algorithm)
    if algorithm == "dissemination_barrier":
        schedule: Schedule = make(size)
    elif algorithm in _ROOTED:
        schedule = make(size, count, item_bytes, root)
    else:
        schedule = make(size, count, item_bytes)
    return schedule
