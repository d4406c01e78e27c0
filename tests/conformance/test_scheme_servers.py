"""Servers that do not wait for all: no gradient is lost, a log replays bit for bit, the bound holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.stale_synchronous import StaleSynchronous
from tests.conformance.optimizer_networks import batches
from tests.conformance.scheme_checks import check_no_gradient_is_lost, check_replay
from tests.conformance.scheme_oracles import BASES, SHARE, check_replicas, train
from tests.conformance.test_optimizers import parameters_of
from tests.conformance.test_schemes import ORDERED

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
    check_replay(bound, make, ranks, base)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_loses_no_gradient_and_counts_none_twice(server: str, base: str) -> None:
    check_no_gradient_is_lost(SERVERS[server][0], 3, base)


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
