"""What a rank computed and what it waited for are told apart, and nothing is left behind."""

from __future__ import annotations

import time

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scaling.exchange_recorder import ExchangeRecorder
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch

#: The shortest time that is certainly not the clock's or the machine's noise, in seconds.
TICK = 0.03


class SlowExecutor(RankExecutor):
    """Computes for a while longer."""

    extra_s = 0.0

    def _run_and_differentiate(self, *arguments):
        time.sleep(self.extra_s)
        return super()._run_and_differentiate(*arguments)


class Overlapping(Scheme):
    """Starts an exchange, computes beside it, and waits for it."""

    def after_backward(self, context):
        buffer = next(iter(context.gradients)).array
        work = context.communicator.iallreduce(buffer, "mean")
        time.sleep(2 * TICK)
        work.wait()


def slow_first_rank(communicator, scheme=None, steps=3):
    executor = SlowExecutor()
    executor.extra_s = 2 * TICK if communicator.rank == 0 else 0.0
    optimizer = DistributedOptimizer(GradientDescent(executor), communicator, scheme or "allreduce")
    with ExchangeRecorder(optimizer) as recorder:
        for number in range(steps):
            recorder.begin_step()
            optimizer.step(batch(number))
            recorder.end_step()
        optimizer.finish()
    return recorder, optimizer


def test_the_rank_that_is_ahead_waits() -> None:
    (slow, _), (fast, _) = run_threads(2, slow_first_rank)

    assert len(slow.steps) == len(fast.steps) == len(fast.arrivals_s) == 3
    for ours, theirs in zip(slow.steps, fast.steps, strict=True):
        assert ours.compute_s > 2 * TICK
        assert theirs.compute_s < ours.compute_s
        assert theirs.exposed_s > TICK > ours.exposed_s
        assert theirs.exchange_s >= theirs.exposed_s - 1e-3
    assert all(late > early for late, early in zip(slow.arrivals_s, fast.arrivals_s, strict=True))


def test_exchange_beside_computation_is_not_exposed() -> None:
    def steps(communicator):
        return slow_first_rank(communicator, Overlapping())

    (_, _), (fast, _) = run_threads(2, steps)

    for times in fast.steps:
        assert times.exchange_s > 2 * TICK  # under way while the rank computed
        assert times.compute_s > 2 * TICK
        assert times.exposed_s < times.exchange_s - TICK


def test_server_waits_for_the_last_gradients_without_computing() -> None:
    def steps(communicator):
        return slow_first_rank(communicator, AsynchronousParameterServer())

    (_, _), (worker, _) = run_threads(2, steps)

    assert all(times.exposed_s > TICK for times in worker.steps)  # until the server has done its own backward pass


def test_groups_of_a_scheme_are_watched_too() -> None:
    def steps(communicator):
        recorder, optimizer = slow_first_rank(communicator, Hierarchical())
        return recorder, "_complete" in vars(optimizer.communicator)

    (_, left), (fast, _) = run_threads(2, steps)

    assert not left
    assert all(times.exposed_s > TICK for times in fast.steps)


def test_nothing_is_left_behind_and_training_is_the_same() -> None:
    def steps(communicator, records):
        executor = RankExecutor()
        optimizer = DistributedOptimizer(GradientDescent(executor), communicator)
        before = dict(vars(communicator))
        if records:
            with ExchangeRecorder(optimizer) as recorder:
                recorder.begin_step()
                optimizer.step(batch(communicator.rank))
                recorder.end_step()
            assert vars(communicator).keys() == before.keys()
        else:
            optimizer.step(batch(communicator.rank))
        return {name: executor.fetch(name) for name in executor.network.get_params()}

    recorded = run_threads(2, lambda communicator: steps(communicator, True))
    plain = run_threads(2, lambda communicator: steps(communicator, False))

    for ours, theirs in zip(recorded, plain, strict=True):
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_refusals() -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())
    with ExchangeRecorder(optimizer) as recorder:
        with pytest.raises(MeasurementError, match="recorded already"):
            ExchangeRecorder(optimizer).__enter__()
        with pytest.raises(MeasurementError, match="not begun"):
            recorder.end_step()
    assert "_complete" not in vars(optimizer.communicator)
