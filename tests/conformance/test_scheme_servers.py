"""Servers that do not wait for all: no gradient is lost, a log replays bit for bit, the bound holds."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes._server import FINISHED
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.stale_synchronous import StaleSynchronous
from tests.conformance.optimizer_networks import batches
from tests.conformance.scheme_oracles import BASES, SHARE, TOLERANCE, check_replicas, train
from tests.conformance.test_optimizers import distance, parameters_of
from tests.conformance.test_schemes import ORDERED


def check_log(log: list[list[int]], ranks: int, steps: int, bound: int | None = None) -> None:
    """Every gradient is in the log once, of a version that was there, and no rank is too far ahead."""
    clocks = dict.fromkeys(range(ranks), 0)
    updates = 0
    for rank, version in log:
        if version == FINISHED:
            assert clocks.pop(rank) == steps
            continue
        assert 0 <= version <= updates
        assert bound is None or clocks[rank] - min(clocks.values()) <= bound
        clocks[rank] += 1
        updates += 1
    assert not clocks
    assert updates == ranks * steps


def slowed(make: Callable[[], Scheme], pause_s: float = 0.02) -> Callable[[], Scheme]:
    """Return a maker of the same scheme, of which rank 1 is slow."""
    kind: Any = type(make())

    class Slowed(kind):
        def before_backward(self, context: StepContext) -> None:
            super().before_backward(context)
            time.sleep(pause_s * (context.communicator.rank == 1))

    def made() -> Scheme:
        scheme = make()
        scheme.__class__ = Slowed
        return scheme

    return made


SERVERS: dict[str, tuple[Callable[..., Scheme], int | None]] = {
    "asynchronous": (AsynchronousParameterServer, None),
    "stale_synchronous_0": (functools.partial(StaleSynchronous, 0), 0),
    "stale_synchronous_1": (functools.partial(StaleSynchronous, 1), 1),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("server", SERVERS)
def test_a_replayed_log_of_a_server_gives_the_same_bits(server: str, ranks: int, base: str) -> None:
    make, bound = SERVERS[server]
    watch = lambda o: (o.scheme.log, parameters_of(o.executor))  # noqa: E731
    _, found = train(slowed(make), ranks, BASES[base], steps=4, watch=watch)
    log = found[0][0]
    check_log(log, ranks, 4, bound)
    check_replicas([[values] for _, values in found])
    courses, again = train(functools.partial(make, replay=log), ranks, BASES[base], steps=4, watch=watch)
    assert again[0][0] == log
    check_replicas([[values] for _, values in [*found, *again]])
    assert distance(again[0][1], courses[0][0]) > 1e-3


def check_no_gradient_is_lost(make: Callable[[], Scheme], ranks: int = 3, steps: int = 4) -> None:
    """By gradient descent the parameters have moved by the sum of all gradients of all ranks."""
    sums: list[np.ndarray] = [np.zeros(1)] * ranks
    kind: Any = type(make())

    class Summing(kind):
        def after_backward(self, context: StepContext) -> None:
            rank = context.communicator.rank
            sums[rank] = sums[rank] + np.concatenate([buffer.array for buffer in context.gradients])
            super().after_backward(context)

    def made() -> Scheme:
        scheme = make()
        scheme.__class__ = Summing
        return scheme

    courses, found = train(made, ranks, BASES["SGD"], steps=steps, watch=lambda o: parameters_of(o.executor))
    moved = np.concatenate([(courses[0][0][name] - value).reshape(-1) for name, value in found[0].items()])
    expected = 0.2 * np.sum(sums, axis=0)
    assert np.abs(moved - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_loses_no_gradient_and_counts_none_twice(server: str) -> None:
    check_no_gradient_is_lost(SERVERS[server][0])


class DroppedGradient(AsynchronousParameterServer):
    """The server's second gradient does not count."""

    def after_backward(self, context: StepContext) -> None:
        super().after_backward(context)
        if context.communicator.rank == 0 and context.step == 1:
            for buffer in context.gradients:
                buffer.array[...] = 0


class Unbounded(StaleSynchronous):
    """Lets every rank go on."""

    def _may_go_on(self, rank: int) -> bool:
        return True


def test_bugs_of_a_server_are_found() -> None:
    with pytest.raises(AssertionError):
        check_no_gradient_is_lost(DroppedGradient)
    _, found = train(slowed(Unbounded), 2, BASES["SGD"], steps=6, watch=lambda o: o.scheme.log)
    with pytest.raises(AssertionError):
        check_log(found[0], 2, 6, 0)


def test_a_log_that_does_not_fit_is_refused() -> None:
    log = [[0, 0], [0, 1], [1, 0], [1, 2]]
    with pytest.raises(TrainingError, match="The log that is to be replayed has rank 0 as number 1"):
        train(functools.partial(StaleSynchronous, 0, log), 2, BASES["SGD"], steps=2)


@pytest.mark.parametrize("scheme", ORDERED)
def test_a_server_goes_on_from_its_state_with_the_same_bits(scheme: str) -> None:
    data = batches(5, size=2 * SHARE)
    kind, kept = SCHEMES.get(scheme), {}

    def stop(optimizer: DistributedOptimizer) -> Any:
        return optimizer.state(), optimizer.executor.state()

    def restore(optimizer: DistributedOptimizer) -> None:
        state, executor = kept["saved"][optimizer.communicator.rank]
        optimizer.executor.restore(executor)
        optimizer.restore(state)

    _, kept["saved"] = train(kind, 2, BASES["Adam"], data=data[:3], watch=stop)
    watch = lambda o: (o.scheme.log, parameters_of(o.executor))  # noqa: E731
    _, first = train(kind, 2, BASES["Adam"], data=data[3:], prepare=restore, watch=watch)
    make = functools.partial(kind, replay=first[0][0])
    _, again = train(make, 2, BASES["Adam"], data=data[3:], prepare=restore, watch=watch)
    _, whole = train(make, 2, BASES["Adam"], data=data, prepare=None, watch=watch, pause_after=3)
    assert first[0][0] == again[0][0] == whole[0][0]
    check_replicas([[values] for _, values in [*first, *again, *whole]])
