"""Training that goes on when a rank fails: thread ranks that can be lost, against one process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, FileWriteError, TrainingError
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.failures import Shrink
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.top_k import TopK
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.distributed.support import RankExecutor, batch
from tests.unit.distributed.survivors import Fleet, Lost, Survivor, run

STEPS = 6


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


def test_what_changes_nothing_is_repeated_without_a_copy_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agreements between steps: a copy of parameters and states is taken only once a rank has failed."""
    copies: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    take = DistributedOptimizer.snapshot

    def counted(optimizer: DistributedOptimizer) -> Any:
        me = optimizer.communicator.world_ranks[optimizer.communicator.rank]
        copies[me] = copies.get(me, 0) + 1
        return take(optimizer)

    monkeypatch.setattr(DistributedOptimizer, "snapshot", counted)

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        ranks = CommunicatorRanks(communicator)
        ranks.follow(DistributedOptimizer(momentum(), communicator))
        assert ranks.gathered(me) == [0, 1, 2]
        assert copies == {}
        if me == 0:
            raise Lost
        found[me] = [ranks.decided(me), *ranks.gathered(me), ranks.largest_in_step(me), *ranks.members, ranks.size]
        assert communicator.lost == (0,)

    run(3, work)

    assert found == {1: [1, 1, 2, 2, 1, 2, 2], 2: [1, 1, 2, 2, 1, 2, 2]}
    assert copies == {1: 1, 2: 1}


def test_what_the_first_rank_did_not_end_is_done_by_the_next_one() -> None:
    done: list[int] = []
    found: dict[int, Any] = {}

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        ranks = CommunicatorRanks(communicator)
        ranks.follow(DistributedOptimizer(momentum(), communicator))

        def act() -> int:
            done.append(me)
            if me == 0:
                raise Lost
            if me == 1:
                raise FileWriteError("planted on purpose")
            return me

        try:
            found[me] = ranks.first_does(act, FileWriteError)
        except FileWriteError as error:
            found[me] = str(error)

    run(3, work)

    assert done == [0, 1]
    assert found == dict.fromkeys((1, 2), "planted on purpose")


def test_a_framework_that_exchanges_by_itself_is_refused() -> None:
    class Outside(AllReduce):
        def bind(self, context: StepContext) -> None:
            super().bind(context)
            context.differentiate = lambda inputs, loss: {}

    with pytest.raises(TrainingError, match="Outside leaves the exchange to the framework"):
        DistributedOptimizer(momentum(), Survivor(0, Fleet(1)), Outside())


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
