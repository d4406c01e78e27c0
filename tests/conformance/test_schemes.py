"""Every scheme against what it must be equal to, on thread ranks; and each check against a planted bug."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.consistent_neighbors import ConsistentNeighbors
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.gossip import Gossip
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.one_bit import OneBit
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.distributed.schemes.power_sgd import PowerSGD
from deep500.distributed.schemes.qsgd import QSGD
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.schemes.zero_1 import Zero1
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.conformance.optimizer_networks import batches
from tests.conformance.scheme_bugs import BUGS
from tests.conformance.scheme_checks import (
    ALL,
    TORUS,
    PrintedNeighbors,
    check_consistent,
    check_consistent_in_float32,
    check_dpsgd,
    check_gossip,
    check_is_allreduce,
    check_is_the_printed,
    check_learns_as_allreduce,
    check_local_sgd,
    check_mean_is_kept,
    check_nothing_is_lost,
    check_ranks_stay_apart,
    check_state_in_parts,
    ring,
)
from tests.conformance.scheme_oracles import (
    BASES,
    SHARE,
    check_equal,
    check_replicas,
    consensus_distance,
    simulated,
    train,
)

FRAMEWORKS = ["reference", "pytorch"]

#: Every base optimizer, and one under another framework.
SOME = [*(("reference", base) for base in BASES), ("pytorch", "Adam")]

#: Schemes whose gradient is the mean of all ranks'.
CONSISTENT: dict[str, Callable[[], Scheme]] = {
    "allreduce": AllReduce,
    "parameter_server": ParameterServer,
    "zero_1": Zero1,
    "hierarchical": functools.partial(Hierarchical, 2),
    "hierarchical_one_machine": Hierarchical,
    "top_k_all": functools.partial(TopK, 1.0),
    "power_sgd_full": functools.partial(PowerSGD, 1000),
}

#: Schemes that keep what they do not send.
FEEDBACK: dict[str, Callable[[], Scheme]] = {
    "top_k_sparse": functools.partial(TopK, 0.02),
    "top_k_dense": functools.partial(TopK, 0.7),
    "one_bit": functools.partial(OneBit, 32),
    "power_sgd": functools.partial(PowerSGD, 1),
}

SLOW_PAIRS = [("SGD", 1), ("SGD", 4), ("Momentum", 2), ("Adam", 3)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_allreduce_is_one_process_with_the_whole_batch(ranks: int, base: str, framework: str) -> None:
    check_consistent(AllReduce, ranks, base, framework)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("base", BASES)
def test_allreduce_in_float32_is_one_process_but_for_rounding(base: str, framework: str) -> None:
    check_consistent_in_float32(AllReduce, 3, base, framework)


@pytest.mark.parametrize(("base", "ranks"), SLOW_PAIRS)
@pytest.mark.parametrize("scheme", CONSISTENT)
def test_consistent_schemes_are_one_process_with_the_whole_batch(scheme: str, base: str, ranks: int) -> None:
    check_consistent(CONSISTENT[scheme], ranks, base)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_parameter_server_is_allreduce(ranks: int) -> None:
    check_is_allreduce(functools.partial(ParameterServer, ranks - 1), ranks, "Adam")


TOPOLOGIES = [
    ("ring", 1, ring(1)),
    ("ring", 2, ring(2)),
    ("ring", 3, ring(3)),
    ("ring", 4, ring(4)),
    ("torus", 4, TORUS),
    ("exponential", 4, ALL),
]


@pytest.mark.parametrize(("framework", "base"), SOME)
@pytest.mark.parametrize(("topology", "ranks", "matrix"), TOPOLOGIES)
def test_dpsgd_is_the_recurrence_of_its_matrix(
    topology: str, ranks: int, matrix: np.ndarray, base: str, framework: str
) -> None:
    check_dpsgd(matrix, functools.partial(DPSGD, topology), ranks, base, framework)


@pytest.mark.parametrize("make", [DPSGD, Gossip, LocalSGD])
def test_averaging_models_preserves_their_mean(make: Callable[[], Scheme]) -> None:
    check_mean_is_kept(make, 3, "SGD")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("ranks", "period"), [(1, 2), (2, 2), (3, 3)])
def test_local_sgd_averages_after_every_period(ranks: int, period: int, base: str) -> None:
    check_local_sgd(period, functools.partial(LocalSGD, period), ranks, base)


@pytest.mark.parametrize("base", ["SGD", "Momentum"])  # for Adam the two differ
@pytest.mark.parametrize("ranks", [2, 3])
def test_local_sgd_of_period_1_is_allreduce(ranks: int, base: str) -> None:
    check_is_allreduce(functools.partial(LocalSGD, 1), ranks, base)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_gossip_is_the_recurrence_of_its_pairs(ranks: int) -> None:
    check_gossip(functools.partial(Gossip, 5), ranks, "Momentum")


@pytest.mark.parametrize(("framework", "base"), SOME)
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_the_printed_optimizer_is_the_scheme_of_its_name(ranks: int, base: str, framework: str) -> None:
    check_is_the_printed(ConsistentNeighbors, ranks, base, framework)


def test_the_printed_optimizer_counts_the_neighbour_of_two_ranks_twice() -> None:
    printed, _ = train(AllReduce, 2, BASES["SGD"], kind=PrintedNeighbors, steps=1)
    alone = simulated(lambda step: (np.eye(2), np.eye(2)), 2, BASES["SGD"], steps=1)
    for rank in range(2):
        for name, start in alone[0][0].items():
            own, other = (alone[r][1][name] - start for r in (rank, 1 - rank))
            np.testing.assert_allclose(printed[rank][1][name], start + (own + 2 * other) / 3, rtol=0, atol=1e-13)


def test_averaging_gradients_lets_replicas_stay_apart() -> None:
    check_ranks_stay_apart(ConsistentNeighbors, 3, "SGD")
    means = train(DPSGD, 3, BASES["SGD"], apart=True)[0]
    assert consensus_distance(means, -1) < 0.1 * consensus_distance(means, 0)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("scheme", FEEDBACK)
def test_what_is_sent_and_kept_is_what_was_given(scheme: str, ranks: int) -> None:
    check_nothing_is_lost(FEEDBACK[scheme], ranks)


def test_top_k_switches_to_dense_without_another_result() -> None:
    class Switched(TopK):
        def is_sparse(self, values: np.ndarray, count: int, size: int) -> bool:
            return not super().is_sparse(values, count, size)

    for density in (0.02, 0.7):
        first, ledger = train(
            functools.partial(TopK, density),
            2,
            BASES["SGD"],
            watch=lambda o: set(o.communicator.ledger.snapshot().operations),
        )
        second, _ = train(functools.partial(Switched, density), 2, BASES["SGD"])
        check_equal(first[0], second[0])
        assert ("allreduce" in ledger[0]) == (density == 0.7)


def test_qsgd_keeps_replicas_equal_and_learns_as_allreduce_does() -> None:
    check_learns_as_allreduce(functools.partial(QSGD, 127, 64), 3, "SGD")


#: Schemes whose course depends on who is first; their restart is tested with a log.
ORDERED = ("asynchronous_parameter_server", "stale_synchronous")

#: The framework's own exchange needs ranks that are processes: test_buckets.py.
RESTORED = [name for name in SCHEMES.names() if name not in (*ORDERED, "native")]


@pytest.mark.parametrize("base", ["Momentum", "Adam"])
@pytest.mark.parametrize("scheme", RESTORED)
def test_a_restored_run_goes_on_with_the_same_bits(scheme: str, base: str) -> None:
    data = batches(6, size=2 * SHARE)
    make = lambda: scheme  # noqa: E731 - as short as it is

    def save(optimizer: DistributedOptimizer) -> tuple[Any, Any]:
        return optimizer.state(), optimizer.executor.state()

    def restore(optimizer: DistributedOptimizer) -> None:
        state, executor = saved[optimizer.communicator.rank]
        optimizer.executor.restore(executor)
        optimizer.restore(state)

    whole, _ = train(make, 2, BASES[base], data=data)
    _, saved = train(make, 2, BASES[base], data=data[:3], watch=save)
    rest, steps = train(make, 2, BASES[base], data=data[3:], prepare=restore, watch=lambda o: o.step_count)
    assert steps == [6, 6]
    for rank in range(2):
        check_replicas([whole[rank][3:], rest[rank]])


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    with pytest.raises(AssertionError):
        bug.check(bug.make, 3, "Momentum", "reference")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_zero_1_keeps_the_state_of_its_own_parameters_alone(framework: str) -> None:
    check_state_in_parts(Zero1, 3, "Adam", framework)


def test_zero_1_refuses_what_looks_at_all_parameters() -> None:
    base = functools.partial(GradientDescent, clip_norm=1.0)
    with pytest.raises(TrainingError, match="clip_norm of GradientDescent looks at all parameters"):
        train(Zero1, 2, base)
