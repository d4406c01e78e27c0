"""Training that goes on when a rank fails: thread ranks that can be lost, against one process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, TrainingError
from deep500.distributed.communicators._thread_exchange import ThreadExchange
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.failures import Shrink
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.surviving_communicator import SurvivingCommunicator
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.distributed.support import RankExecutor, batch

STEPS = 6


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

    def shrink(self) -> tuple[int, ...]:
        fleet, number = self.fleet, self.next("shrink")
        fleet.agree("shrink", number, self.me, True)
        with fleet.changed:
            if number == len(fleet.exchanges):  # the first one forms the world, which those lost later are a part of
                fleet.world = tuple(rank for rank in fleet.world if rank not in fleet.lost)
                fleet.exchanges.append(ThreadExchange(len(fleet.world)))
            world = fleet.worlds.setdefault(number, fleet.world)
        gone = tuple(rank for rank in self.world_ranks if rank not in world)
        self._exchange = fleet.exchanges[number]
        self.world_ranks, self.rank, self.size = world, world.index(self.me), len(world)
        self._is_world = False
        return gone


class Lost(BaseException):
    """Ends a thread rank, as a signal ends a process."""


def run(size: int, work: Callable[[Survivor], None]) -> None:
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


class Victims(AllReduce):
    """Ranks are lost in a hook of a step, by the number that they started with."""

    accidents: ClassVar[dict[tuple[str, int, int], bool]] = {}

    def _meet(self, hook: str, context: StepContext) -> None:
        communicator = context.communicator
        if (hook, context.step, communicator.world_ranks[communicator.rank]) in self.accidents:
            raise Lost

    def before_backward(self, context: StepContext) -> None:
        self._meet("before", context)

    def after_backward(self, context: StepContext) -> None:
        self._meet("after", context)

    def after_update(self, context: StepContext) -> None:
        self._meet("update", context)


def momentum() -> MomentumOptimizer:
    return MomentumOptimizer(RankExecutor(), "loss", learning_rate=0.1, momentum=0.9)


def minibatch(rank: int, step: int) -> dict[str, Any]:
    return batch(100 * rank + step)


def train(communicator: Survivor, scheme: Scheme, told: dict[int, list[Shrink]]) -> tuple[DistributedOptimizer, Any]:
    me = communicator.rank
    optimizer = DistributedOptimizer(momentum(), communicator, scheme)
    optimizer.on_shrink.append(told.setdefault(me, []).append)
    members = []
    for step in range(STEPS):
        optimizer.step(minibatch(me, step))
        members.append(communicator.world_ranks)
    return optimizer, members


def one_process(members: list[tuple[int, ...]]) -> dict[str, Any]:
    optimizer = momentum()
    for step, ranks in enumerate(members):
        rows = [minibatch(rank, step) for rank in ranks]
        optimizer.step({name: np.concatenate([row[name] for row in rows]) for name in rows[0]})
    return parameters(optimizer.executor)


def parameters(executor: Any) -> dict[str, Any]:
    return {name: np.array(executor.fetch(name)) for name in executor.network.get_params()}


@pytest.mark.parametrize(
    ("accidents", "size", "expected"),
    [
        ([("before", 2, 1)], 3, [(0, 1, 2)] * 2 + [(0, 2)] * 4),
        ([("after", 2, 0)], 3, [(0, 1, 2)] * 2 + [(1, 2)] * 4),  # the first rank: another takes its place
        ([("update", 2, 2)], 3, [(0, 1, 2)] * 2 + [(0, 1)] * 4),  # others have updated, and go back
        ([("before", 0, 1)], 2, [(0,)] * 6),
        ([("after", 1, 1), ("update", 3, 0)], 4, [(0, 1, 2, 3)] + [(0, 2, 3)] * 2 + [(2, 3)] * 3),
        ([("before", 2, 1), ("after", 2, 2)], 4, [(0, 1, 2, 3)] * 2 + [(0, 3)] * 4),  # in the same step
    ],
)
def test_survivors_equal_one_process_with_their_minibatches(
    accidents: list[tuple[str, int, int]],
    size: int,
    expected: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Victims, "accidents", dict.fromkeys(accidents, True))
    told: dict[int, list[Shrink]] = {}
    ended: dict[int, tuple[Any, Any]] = {}

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        ended[me] = train(communicator, Victims(), told)

    with caplog.at_level(logging.WARNING, logger="deep500.distributed.failures"):
        run(size, work)

    lost = {rank for _, _, rank in accidents}
    assert set(ended) == set(range(size)) - lost
    oracle = one_process(expected)
    for rank, (optimizer, members) in ended.items():
        assert members == expected
        assert optimizer.steps_begun == STEPS
        assert (optimizer.communication.rank, optimizer.communication.size) == (
            members[-1].index(rank),
            len(members[-1]),
        )
        for name, value in parameters(optimizer.executor).items():
            np.testing.assert_allclose(value, oracle[name], rtol=0, atol=1e-12)
        assert told[rank][-1].survivors == members[-1]
        assert set().union(*(shrink.lost for shrink in told[rank])) == lost
    assert caplog.text.count("failed;") >= 1
    assert "Lost: their minibatches of this step." in caplog.text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TopK(density=0.5), "what TopK kept there (residuals)"),
        (lambda: LocalSGD(period=2), "their parameters, which differed"),
        (DPSGD, "their parameters, which differed"),
    ],
)
def test_what_is_lost_is_said(make: Callable[[], Scheme], said: str) -> None:
    told: dict[int, list[Shrink]] = {}
    residuals: dict[int, Any] = {}

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        optimizer = DistributedOptimizer(momentum(), communicator, make())
        optimizer.on_shrink.append(told.setdefault(me, []).append)
        optimizer.step(minibatch(me, 0))
        before = optimizer.state()["scheme"]
        if me == 1:
            raise Lost
        optimizer.on_shrink.append(lambda _: residuals.update({me: (before, optimizer.state()["scheme"])}))
        optimizer.step(minibatch(me, 1))

    run(3, work)

    for rank in (0, 2):
        assert any(said in text for text in told[rank][0].state_lost)
        before, after = residuals[rank]  # what a rank that is left kept, it still has
        for dtype, kept in before["kept"].get("residuals", {}).items():
            np.testing.assert_array_equal(after["kept"]["residuals"][dtype], kept)
    assert str(told[0][0]).startswith("Rank 1 failed; 2 ranks go on and repeat step 1. Lost: their minibatches")


def test_something_between_steps_is_repeated() -> None:
    sums: dict[int, float] = {}

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        optimizer = DistributedOptimizer(momentum(), communicator)

        def add() -> float:
            if me == 2:
                raise Lost
            buffer = np.array([1.0 + me])
            communicator.allreduce(buffer)
            return float(buffer[0])

        sums[me] = optimizer.together(add)

    run(3, work)

    assert sums == {0: 3.0, 1: 3.0}


def test_other_errors_are_raised_and_lose_their_rank() -> None:
    ended: list[int] = []

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        optimizer = DistributedOptimizer(momentum(), communicator)

        def fail() -> None:
            if me == 1:
                raise ValueError("planted on purpose")

        optimizer.together(fail)
        ended.append(communicator.size)

    with pytest.raises(ValueError, match="planted on purpose"):
        run(3, work)
    assert ended == [2, 2]


def test_scheme_without_a_step_in_common_is_refused() -> None:
    fleet = Fleet(1)

    with pytest.raises(TrainingError, match="AsynchronousParameterServer lets ranks be in different steps"):
        DistributedOptimizer(momentum(), Survivor(0, fleet), AsynchronousParameterServer())


def test_communicators_that_do_not_survive_raise() -> None:
    optimizer = DistributedOptimizer(momentum(), LocalCommunicator())

    def fail() -> None:
        raise CommunicationError("planted on purpose")

    with pytest.raises(CommunicationError, match="planted on purpose"):
        optimizer.together(fail)
