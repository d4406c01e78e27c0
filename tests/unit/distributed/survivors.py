"""Thread ranks that can be lost, and a communicator with which the others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from deep500.distributed.communicators._thread_exchange import ThreadExchange
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.surviving_communicator import SurvivingCommunicator

__all__ = ["Fleet", "Lost", "Survivor", "run"]


class Fleet:
    """What the thread ranks share: who is lost, the exchange of those that are left, and votes."""

    def __init__(self, size: int) -> None:
        self.changed = threading.Condition()
        self.lost: set[int] = set()
        self.world = tuple(range(size))
        self.exchanges = [ThreadExchange(size)]
        self.worlds: dict[int, tuple[int, ...]] = {}
        self.rounds: dict[tuple[str, int], dict[int, Any]] = {}
        self.verdicts: dict[tuple[str, int], bool] = {}

    def lose(self, rank: int) -> None:
        with self.changed:
            self.lost.add(rank)
            for exchange in self.exchanges:
                exchange.stop(f"rank {rank} was lost")
            self.changed.notify_all()

    def agree(self, what: str, number: int, rank: int, value: bool) -> bool:
        """Return, once those that are left have all said something, whether none is lost and all said yes."""
        with self.changed:
            said = self.rounds.setdefault((what, number), {})
            said[rank] = value
            self.changed.notify_all()
            everyone = self.changed.wait_for(lambda: set(self.world) - self.lost <= set(said), timeout=30)
            assert everyone
            # The first one that sees it decides for all: a rank may be lost before others have looked.
            verdict = not set(self.world) & self.lost and all(said.values())
            return self.verdicts.setdefault((what, number), verdict)


class Survivor(LocalCommunicator, SurvivingCommunicator):
    """A thread rank that goes on without others."""

    def __init__(self, rank: int, fleet: Fleet) -> None:
        super().__init__(rank, fleet.exchanges[0], timeout_s=30)
        self.fleet = fleet
        self.me = rank
        self.counts: dict[str, int] = {}

    def next(self, what: str) -> int:
        self.counts[what] = number = self.counts.get(what, 0) + 1
        return number

    def is_broken(self) -> bool:
        return bool(self._exchange._shared.end)

    def revoke(self) -> None:
        self._exchange.stop("it was revoked")

    def agree(self, done: bool) -> bool:
        return self.fleet.agree("agree", self.next("agree"), self.me, done)

    def _shrink(self) -> None:
        fleet, number = self.fleet, self.next("shrink")
        fleet.agree("shrink", number, self.me, True)
        with fleet.changed:
            if number == len(fleet.exchanges):  # the first one forms the world, which those lost later are a part of
                fleet.world = tuple(rank for rank in fleet.world if rank not in fleet.lost)
                fleet.exchanges.append(ThreadExchange(len(fleet.world)))
            world = fleet.worlds.setdefault(number, fleet.world)
        self._exchange = fleet.exchanges[number]
        self.world_ranks, self.rank, self.size = world, world.index(self.me), len(world)
        self._is_world = False


class Lost(BaseException):
    """Ends a thread rank, as a signal ends a process."""


def run(size: int, work: Callable[[Survivor], None]) -> None:
    """Run a function on thread ranks; one that raises :class:`Lost` is lost, and the others go on."""
    fleet = Fleet(size)
    errors: list[BaseException] = []

    def start(rank: int) -> None:
        try:
            work(Survivor(rank, fleet))
        except Lost:
            fleet.lose(rank)
        except BaseException as error:  # noqa: BLE001, RUF100 - raised below
            fleet.lose(rank)
            errors.append(error)

    threads = [threading.Thread(target=start, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
