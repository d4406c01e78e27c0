"""Ranks that have come to their end, and the end of those that would wait for them for ever.

``sys.exit`` on one rank, or a program that ends early, raises no error anywhere: MPI waits in silence for the other
ranks, which wait for the one that left. So a rank tells the others when it leaves, with the number of collective
operations that it took part in by group; a thread of each rank listens, and ends all ranks where its own rank waits
for an operation that can never complete.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deep500.distributed.communicators._mpi_library import abort_all, mpi
from deep500.measure.clock import Stopwatch

__all__ = ["Departures", "Wait"]

#: How often the thread looks, in seconds: often enough to end within a second, and too rarely to be seen in timings.
_PERIOD_S = 0.25

#: A message that was under way when its sender left has arrived after this time.
_ARRIVAL_S = 2.0


@dataclass(frozen=True)
class Wait:
    """What a rank waits for.

    Attributes:
        operation: Its name.
        peers: Ranks, of the communicator that all others were split off from, of which each can keep it waiting.
        group: Name of the communicator.
        number: Number of the collective operation in this communicator; 0 of a message between two ranks.
    """

    operation: str
    peers: Sequence[int]
    group: str
    number: int

    def late(self, timeout_s: float) -> str:
        """Return the message of a wait that has taken too long."""
        peers = ", ".join(str(peer) for peer in self.peers)
        return (
            f"{self.operation} was not done within {timeout_s:g} s: of the ranks {peers} at least one does not answer "
            "(it was stopped, is stuck, or calls something else). Look at what they do, or raise timeout_s."
        )


class Departures:
    """Tells the other ranks when this one leaves, and notices when this one waits for a rank that has left."""

    def __init__(self, communicator: Any) -> None:
        """Start listening on a communicator of its own, a duplicate; every rank must do so."""
        self._control = communicator.Dup()
        self._counts: dict[str, int] = {}
        self._waits: dict[int, tuple[Wait, float | None, Stopwatch]] = {}
        self._departed: dict[int, tuple[dict[str, int], Stopwatch]] = {}
        self._over = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="departures of other ranks", daemon=True)
        self._listener.start()
        atexit.register(self._leave)

    def next_number(self, group: str) -> int:
        """Return the number of this rank's next collective operation in a group, and count it."""
        self._counts[group] = number = self._counts.get(group, 0) + 1
        return number

    def begin(self, wait: Wait, timeout_s: float | None = None) -> None:
        """Note what this thread waits for; where it takes longer than a limit all ranks are ended."""
        self._waits[threading.get_ident()] = wait, timeout_s, Stopwatch()

    def end(self) -> None:
        """Note that this thread does not wait any more."""
        self._waits.pop(threading.get_ident(), None)

    def _listen(self) -> None:
        library = mpi()
        status = library.Status()
        while not self._over.wait(_PERIOD_S):
            while self._control.Iprobe(library.ANY_SOURCE, 0, status):
                source = status.Get_source()
                self._departed[source] = (self._control.recv(source=source, tag=0), Stopwatch())
            for wait, timeout_s, watch in list(self._waits.values()):
                self._check(wait)
                if timeout_s is not None and watch.elapsed_s() > timeout_s:
                    abort_all(wait.late(timeout_s))

    def _check(self, wait: Wait) -> None:
        gone = [peer for peer in wait.peers if peer in self._departed]
        if wait.number:
            missing = [peer for peer in gone if self._departed[peer][0].get(wait.group, 0) < wait.number]
        elif len(gone) == len(wait.peers) and all(self._departed[peer][1].elapsed_s() > _ARRIVAL_S for peer in gone):
            missing = gone
        else:
            missing = []
        if missing:
            ranks = ", ".join(str(peer) for peer in missing)
            abort_all(
                f"This rank waits in {wait.operation} for rank {ranks}, which has ended (sys.exit, or the end of its "
                "program). Every rank must call the same operations; end all ranks together."
            )

    def _leave(self) -> None:
        """Tell the others; MPI itself then waits for them in its own end."""
        library = mpi()
        self._over.set()
        self._listener.join(timeout=10 * _PERIOD_S)
        if library.Is_finalized():
            return
        others = [peer for peer in range(self._control.size) if peer != self._control.rank]
        requests = [self._control.isend(self._counts, dest=peer, tag=0) for peer in others]
        watch = Stopwatch()
        while not library.Request.Testall(requests) and watch.elapsed_s() < _ARRIVAL_S:
            self._over.wait(0)
