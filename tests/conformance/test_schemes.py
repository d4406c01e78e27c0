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
from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.scheme import Scheme, StepContext
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
from tests.conformance.scheme_oracles import (
    BASES,
    SHARE,
    TOLERANCE,
    Values,
    check_equal,
    check_replicas,
    consensus_distance,
    mean_of,
    one_process,
    simulated,
    train,
)
from tests.conformance.test_optimizers import distance

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


def check_consistent(make: Callable[[], Scheme], ranks: int, base: str, framework: str = "reference") -> None:
    """The course is that of one process with the minibatches of all ranks, and replicas have the same bits."""
    courses, _ = train(make, ranks, BASES[base], framework)
    check_replicas(courses)
    check_equal(courses[0], one_process(ranks, BASES[base], framework))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_allreduce_is_one_process_with_the_whole_batch(ranks: int, base: str, framework: str) -> None:
    check_consistent(AllReduce, ranks, base, framework)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("base", BASES)
def test_allreduce_in_float32_is_one_process_but_for_rounding(base: str, framework: str) -> None:
    courses, _ = train(AllReduce, 3, BASES[base], framework, dtype="float32")
    check_replicas(courses)
    check_equal(courses[0], one_process(3, BASES[base], framework, dtype="float32"), 2e-5)


@pytest.mark.parametrize(("base", "ranks"), SLOW_PAIRS)
@pytest.mark.parametrize("scheme", CONSISTENT)
def test_consistent_schemes_are_one_process_with_the_whole_batch(scheme: str, base: str, ranks: int) -> None:
    check_consistent(CONSISTENT[scheme], ranks, base)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_parameter_server_is_allreduce(ranks: int) -> None:
    served, _ = train(functools.partial(ParameterServer, ranks - 1), ranks, BASES["Adam"])
    reduced, _ = train(AllReduce, ranks, BASES["Adam"])
    check_equal(served[0], reduced[0])


def ring(ranks: int) -> np.ndarray:
    """The matrix of Metropolis weights of a ring, written out."""
    if ranks <= 2:
        return np.full((ranks, ranks), 1 / ranks)
    matrix = np.eye(ranks) / 3
    for rank in range(ranks):
        matrix[rank, (rank + 1) % ranks] = matrix[rank, (rank - 1) % ranks] = 1 / 3
    return matrix


#: Two rows of two ranks: each has the one beside it and the one below or above it.
TORUS = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]) / 3

#: At four ranks the distances 1 and 2 reach all others.
ALL = np.full((4, 4), 1 / 4)

TOPOLOGIES = [
    ("ring", 1, ring(1)),
    ("ring", 2, ring(2)),
    ("ring", 3, ring(3)),
    ("ring", 4, ring(4)),
    ("torus", 4, TORUS),
    ("exponential", 4, ALL),
]


def check_recurrence(
    make: Callable[[], Scheme], mixing: Any, ranks: int, base: str, framework: str = "reference", *, apart: bool = True
) -> list[list[Values]]:
    courses, _ = train(make, ranks, BASES[base], framework, apart=apart)
    expected = simulated(mixing, ranks, BASES[base], framework, apart=apart)
    for received, course in zip(courses, expected, strict=True):
        check_equal(received, course)
    return courses


@pytest.mark.parametrize(("framework", "base"), SOME)
@pytest.mark.parametrize(("topology", "ranks", "matrix"), TOPOLOGIES)
def test_dpsgd_is_the_recurrence_of_its_matrix(
    topology: str, ranks: int, matrix: np.ndarray, base: str, framework: str
) -> None:
    mixing = lambda step: (np.eye(ranks), matrix)  # noqa: E731 - as short as the formula
    courses = check_recurrence(functools.partial(DPSGD, topology), mixing, ranks, base, framework)
    assert ranks == 1 or consensus_distance(courses, -1) < 0.5 * consensus_distance(courses, 0)


@pytest.mark.parametrize("make", [DPSGD, Gossip, LocalSGD])
def test_averaging_models_preserves_their_mean(make: Callable[[], Scheme]) -> None:
    still = functools.partial(GradientDescent, learning_rate=0.0)
    courses, _ = train(make, 3, still, steps=8, apart=True)
    for step in range(1, 9):
        assert distance(mean_of(courses, step), mean_of(courses, 0)) <= 1e-14
        assert consensus_distance(courses, step) <= consensus_distance(courses, step - 1) + 1e-14
    assert consensus_distance(courses, -1) < 0.2 * consensus_distance(courses, 0)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("ranks", "period"), [(1, 2), (2, 2), (3, 3)])
def test_local_sgd_averages_after_every_period(ranks: int, period: int, base: str) -> None:
    def mixing(step: int) -> tuple[np.ndarray, np.ndarray]:
        mean = np.full((ranks, ranks), 1 / ranks)
        return (mean if step % period == 0 else np.eye(ranks)), np.eye(ranks)

    check_recurrence(functools.partial(LocalSGD, period), mixing, ranks, base)


@pytest.mark.parametrize("base", ["SGD", "Momentum"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_local_sgd_of_period_1_is_allreduce(ranks: int, base: str) -> None:
    local, _ = train(functools.partial(LocalSGD, 1), ranks, BASES[base])
    reduced, _ = train(AllReduce, ranks, BASES[base])
    check_replicas(local)
    check_equal(local[0], reduced[0])


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_gossip_is_the_recurrence_of_its_pairs(ranks: int) -> None:
    scheme = Gossip(5)

    def mixing(step: int) -> tuple[np.ndarray, np.ndarray]:
        matrix = np.zeros((ranks, ranks))
        for rank in range(ranks):
            matrix[rank, rank] += 0.5
            matrix[rank, scheme.partner(step, rank, ranks)] += 0.5
        assert (matrix == matrix.T).all()
        assert (matrix.sum(axis=0) == 1).all()
        return matrix, np.eye(ranks)

    check_recurrence(functools.partial(Gossip, 5), mixing, ranks, "Momentum")


class PrintedNeighbors(DistributedOptimizer):
    """The optimizer that seed 002 prints."""

    def step(self, inputs):
        self.base_optimizer.new_input()
        for param in self.network.get_params():
            self.base_optimizer.prepare_param(param)
        output = self.executor.inference_and_backprop(inputs, self.base_optimizer.loss)
        gradients = self.network.gradient(self.base_optimizer.loss)
        for param_name, grad_name in gradients:
            param, grad = self.network.fetch_tensors([param_name, grad_name])
            grad = self.communication.reduce_from_neighbors(grad) / 3
            param = self.base_optimizer.update_rule(grad, param, param_name)
            self.network.feed_tensor(param_name, param)
        return output


@pytest.mark.parametrize(("framework", "base"), SOME)
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_the_printed_optimizer_is_the_scheme_of_its_name(ranks: int, base: str, framework: str) -> None:
    printed, _ = train(AllReduce, ranks, BASES[base], framework, apart=True, kind=PrintedNeighbors)
    courses, _ = train(ConsistentNeighbors, ranks, BASES[base], framework, apart=True)
    for received, course in zip(courses, printed, strict=True):
        check_equal(received, course)


def test_the_printed_optimizer_counts_the_neighbour_of_two_ranks_twice() -> None:
    printed, _ = train(AllReduce, 2, BASES["SGD"], kind=PrintedNeighbors, steps=1)
    alone = simulated(lambda step: (np.eye(2), np.eye(2)), 2, BASES["SGD"], steps=1)
    for rank in range(2):
        for name, start in alone[0][0].items():
            own, other = (alone[r][1][name] - start for r in (rank, 1 - rank))
            np.testing.assert_allclose(printed[rank][1][name], start + (own + 2 * other) / 3, rtol=0, atol=1e-13)


def test_averaging_gradients_lets_replicas_stay_apart() -> None:
    courses, _ = train(ConsistentNeighbors, 3, BASES["SGD"], apart=True)
    means = train(DPSGD, 3, BASES["SGD"], apart=True)[0]
    assert consensus_distance(courses, -1) > 0.5 * consensus_distance(courses, 0)
    assert consensus_distance(means, -1) < 0.1 * consensus_distance(means, 0)


def recording(make: Callable[[], Scheme]) -> Callable[[], Scheme]:
    """Return a maker of the same scheme that adds up the gradients that it is given, and those that it returns."""
    kind: Any = type(make())

    class Recording(kind):
        _sums = (0.0, 0.0)

        def after_backward(self, context: StepContext) -> None:
            given = np.concatenate([buffer.array for buffer in context.gradients])
            super().after_backward(context)
            used = np.concatenate([buffer.array for buffer in context.gradients])
            self._sums = (self._sums[0] + given, self._sums[1] + used)

    def made() -> Scheme:
        scheme = make()
        scheme.__class__ = Recording
        return scheme

    return made


def check_nothing_is_lost(make: Callable[[], Scheme], ranks: int, base: str = "Momentum", steps: int = 6) -> None:
    """What all ranks were given is what they used, plus what they keep; and the replicas have the same bits."""
    watch = lambda optimizer: (optimizer.scheme._sums, optimizer.scheme.residuals)  # noqa: E731
    courses, found = train(recording(make), ranks, BASES[base], steps=steps, watch=watch)
    check_replicas(courses)
    given = sum(sums[0] for sums, _ in found)
    kept = sum(np.concatenate(list(residuals.values())) for _, residuals in found)
    used = ranks * found[0][0][1]
    assert np.abs(used + kept - given).max() <= TOLERANCE * np.abs(given).max()
    assert np.abs(kept).max() > 0.01 * np.abs(given).max(), "nothing was left out, so that nothing was tested"


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
    courses, _ = train(functools.partial(QSGD, 127, 64), 3, BASES["SGD"], steps=6)
    check_replicas(courses)
    exact = one_process(3, BASES["SGD"], steps=6)
    assert 1e-9 < distance(courses[0][-1], exact[-1]) < 0.05


#: Schemes whose course depends on who is first; their restart is tested with a log.
ORDERED = ("asynchronous_parameter_server", "stale_synchronous")


@pytest.mark.parametrize("base", ["Momentum", "Adam"])
@pytest.mark.parametrize("scheme", [name for name in SCHEMES.names() if name not in ORDERED])
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


class DroppedRoot(ParameterServer):
    """The fault of the published parameter server: the root's gradient does not count."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        if context.communicator.rank == self.root:
            bucket.array[...] = 0
        super().on_bucket(bucket, context)


class MissingDivision(AllReduce):
    """The sum in the place of the mean."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        context.communicator.allreduce(bucket.array)


class LeakedResidual(TopK):
    """One percent of what is kept is lost."""

    def after_backward(self, context: StepContext) -> None:
        super().after_backward(context)
        for residual in self.residuals.values():
            residual *= 0.99


class OwnMean(AllReduce):
    """A rank that updates with its own gradient: its replica parts from the others."""

    def after_backward(self, context: StepContext) -> None:
        if context.communicator.rank == 1:
            next(iter(context.gradients)).array[:3] *= 1 + 1e-15


class MixedAfterwards(DPSGD):
    """Models mixed after the update instead of before: it is another recurrence."""

    def after_backward(self, context: StepContext) -> None:
        pass

    def after_update(self, context: StepContext) -> None:
        super().after_backward(context)


@pytest.mark.parametrize("bug", [DroppedRoot, MissingDivision, OwnMean])
def test_a_planted_bug_is_found_by_the_consistent_oracle(bug: Callable[[], Scheme]) -> None:
    with pytest.raises(AssertionError):
        check_consistent(bug, 2, "Momentum")


def test_a_leaked_residual_is_found() -> None:
    with pytest.raises(AssertionError):
        check_nothing_is_lost(functools.partial(LeakedResidual, 0.02), 2)


def test_a_mixing_at_the_wrong_time_is_found() -> None:
    with pytest.raises(AssertionError):
        check_recurrence(MixedAfterwards, lambda step: (np.eye(3), ring(3)), 3, "SGD")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_zero_1_keeps_the_state_of_its_own_parameters_alone(framework: str) -> None:
    def slots(optimizer: DistributedOptimizer) -> set[str]:
        return set(optimizer.state()["base"]["updates"]["slots"])

    courses, found = train(Zero1, 3, BASES["Adam"], framework, watch=slots)
    check_replicas(courses)
    check_equal(courses[0], one_process(3, BASES["Adam"], framework))
    assert all(found)
    assert sum(map(len, found)) == len(set.union(*found)) == len(courses[0][0])


def test_zero_1_refuses_what_looks_at_all_parameters() -> None:
    base = functools.partial(GradientDescent, clip_norm=1.0)
    with pytest.raises(TrainingError, match="clip_norm of GradientDescent looks at all parameters"):
        train(Zero1, 2, base)


def test_every_scheme_has_an_oracle_here() -> None:
    tested = {"dpsgd", "gossip", "local_sgd", "consistent_neighbors", "qsgd", "top_k", "one_bit", "power_sgd"}
    tested |= {"asynchronous_parameter_server", "stale_synchronous"}
    assert set(SCHEMES.names()) == tested | {"allreduce", "parameter_server", "hierarchical", "zero_1"}
