"""How ranks agree: the values of rank 0, of all, without a byte in the ledger of a scheme."""

from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import FileWriteError
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.communicators.simulated import SimulatedCommunicator, run_simulated
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.samplers.distributed_sampler import DistributedSampler
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.ranks import ALONE
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.statistics import Outcome
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining
from tests.unit.distributed.support import RankExecutor
from tests.unit.training.support import clusters


@pytest.mark.parametrize("size", [1, 2, 3])
def test_values_of_rank_0_and_of_all(size: int) -> None:
    def work(communicator: Communicator) -> Any:
        ranks = CommunicatorRanks(communicator)
        value = {"rank": ranks.rank, "text": "é" * ranks.rank, "number": float("nan")}
        found = ranks.decided(value["rank"]), [v["text"] for v in ranks.gathered(value)]
        numbers = ranks.decided_in_step(7 - ranks.rank), ranks.largest_in_step(ranks.rank)
        return (*found, *numbers, communicator.ledger.snapshot().payload_bytes)

    assert run_threads(size, work) == [(0, ["é" * rank for rank in range(size)], 7, size - 1, 0)] * size


def test_an_error_of_rank_0_is_everybodys() -> None:
    def work(communicator: Communicator) -> str:
        def fails() -> None:
            raise FileWriteError(f"full on rank {communicator.rank}")

        with pytest.raises(FileWriteError) as raised:
            CommunicatorRanks(communicator).first_does(fails, FileWriteError)
        return str(raised.value)

    assert run_threads(3, work) == ["full on rank 0"] * 3


class Served(Scheme):
    """A scheme that lets ranks run apart: others wait in their step for rank 0, wherever it is."""

    keeps_replicas_equal = False

    def after_backward(self, context: StepContext) -> None:
        pass

    def finish(self, context: StepContext) -> None:
        context.communicator.barrier()


def followed(communicator: Communicator, scheme: Scheme) -> CommunicatorRanks:
    ranks = CommunicatorRanks(communicator)
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator, scheme)
    ranks.follow(optimizer)
    assert optimizer.ranks is ranks
    return ranks


def test_where_ranks_run_apart_rank_0_waits_for_nobody_between_steps() -> None:
    def work(communicator: Communicator) -> list[int]:
        ranks = followed(communicator, Served())
        if ranks.rank == 0:  # as many steps as it likes, while the other has not begun
            found = [ranks.decided_in_step(step) for step in range(5)]
            communicator.barrier()
        else:
            communicator.barrier()
            found = [ranks.decided_in_step(-1) for _ in range(5)]
        assert ranks.largest_in_step(ranks.rank) == 0
        return [*found, ranks.decided(ranks.rank)]

    assert run_threads(2, work, timeout_s=20) == [[0, 1, 2, 3, 4, 0]] * 2


@pytest.mark.parametrize(("scheme", "equal"), [(AllReduce, True), (LocalSGD, False), (Served, False)])
def test_replicas_are_equal_where_the_scheme_says_so(scheme: type[Scheme], equal: bool) -> None:
    assert run_threads(2, lambda communicator: followed(communicator, scheme()).replicas_equal) == [equal] * 2


def test_an_optimizer_with_a_step_of_its_own_promises_nothing() -> None:
    class Own(DistributedOptimizer):
        def step(self, inputs: Any) -> Any:
            return super().step(inputs)

    def work(communicator: Communicator) -> bool:
        ranks = CommunicatorRanks(communicator)
        ranks.follow(Own(GradientDescent(RankExecutor()), communicator))
        return ranks.replicas_equal

    assert run_threads(2, work) == [False, False]


def test_an_optimizer_has_the_ranks_that_agree_by_itself() -> None:
    """A trainer of one's own agrees as a recipe does: what rank 0 decides is decided, and tests are dealt out."""

    class Stop(RunnerEvent):
        def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
            if runner.optimizer.ranks.is_first and epoch == 1:
                raise StopTraining

    def work(communicator: Communicator) -> Any:
        executor = RankExecutor()
        optimizer = DistributedOptimizer(GradientDescent(executor), communicator)
        samplers = DistributedSampler(clusters(), 4, communicator), OrderedSampler(clusters(11, seed=1), 4)
        stats = Trainer(*samplers, executor, optimizer).run_loop(5, events=[Stop()])
        assert optimizer.ranks is optimizer.ranks
        tests = [record.test for record in stats.epochs]
        return stats.outcome, stats.samples, [(test.samples, test.loss) for test in tests if test]

    one, two = run_threads(2, work)
    assert one == two
    assert one[0] is Outcome.STOPPED
    assert one[1] == 2 * len(clusters())
    assert [samples for samples, _ in one[2]] == [11, 11]


def test_a_rank_that_stands_for_all_decides_alone() -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), SimulatedCommunicator(16))

    assert optimizer.ranks is ALONE
    found = run_simulated(2, lambda c: DistributedOptimizer(GradientDescent(RankExecutor()), c).ranks.gathered(c.rank))
    assert found == [[0, 1]] * 2


def test_a_communicator_that_took_the_place_of_another_is_used() -> None:
    """As where a training goes on without a rank that failed."""

    def work(communicator: Communicator) -> list[int]:
        ranks = CommunicatorRanks(communicator)
        optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator)
        ranks.follow(optimizer)
        ranks.decided(0)
        smaller = communicator.split(0 if communicator.rank else None)
        if smaller is None:
            return []
        optimizer.communicator = smaller
        return [ranks.rank, ranks.size, *ranks.gathered(ranks.rank)]

    assert run_threads(3, work) == [[], [0, 2, 0, 1], [1, 2, 0, 1]]
