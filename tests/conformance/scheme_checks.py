"""What holds of a scheme: checks of a training on ranks against an oracle, for any base optimizer and framework.

They run on thread ranks (test_schemes.py, test_scheme_servers.py) and on those of MPI (test_distributed.py).
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes._server import FINISHED
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.gossip import Gossip
from deep500.distributed.schemes.qsgd import QSGD
from tests.conformance.optimizer_networks import batches
from tests.conformance.optimizer_oracles import CASES, Oracle
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
from tests.conformance.test_optimizers import distance, parameters_of

MakeScheme = Callable[[], Scheme]

#: What float32 rounds of a few steps.
FLOAT32 = 2e-5

#: The probability that the check of QSGD fails although the rounding is unbiased.
ERROR = 1e-9


def derived(make: MakeScheme, change: Callable[[Any], type]) -> MakeScheme:
    """Return a maker of the same scheme, of a class that is derived from its own."""
    kind = change(type(make()))

    def made() -> Scheme:
        scheme = make()
        scheme.__class__ = kind
        return scheme

    return made


# --- gradients that are the mean of all ranks' ---


def check_consistent(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """The course is that of one process with the minibatches of all ranks, and replicas have the same bits."""
    courses, _ = train(make, ranks, BASES[base], framework)
    check_replicas(courses)
    check_equal(courses[0], one_process(ranks, BASES[base], framework))


def check_consistent_in_float32(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    courses, _ = train(make, ranks, BASES[base], framework, dtype="float32")
    check_replicas(courses)
    check_equal(courses[0], one_process(ranks, BASES[base], framework, dtype="float32"), FLOAT32)


def check_is_allreduce(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """The course is that of the scheme ``allreduce``, and replicas have the same bits."""
    courses, _ = train(make, ranks, BASES[base], framework)
    reduced, _ = train(AllReduce, ranks, BASES[base], framework)
    check_replicas(courses)
    check_equal(courses[0], reduced[0])


def check_state_in_parts(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Each rank has the optimizer's state of parameters of its own, and the course is that of one process."""

    def slots(optimizer: DistributedOptimizer) -> set[str]:
        return set(optimizer.state()["base"]["updates"]["slots"])

    courses, found = train(make, ranks, BASES[base], framework, watch=slots)
    check_replicas(courses)
    check_equal(courses[0], one_process(ranks, BASES[base], framework))
    if base != "SGD":  # which has no state
        assert sum(map(len, found)) == len(set.union(*found)) == len(courses[0][0])


# --- averages of models ---


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


def check_recurrence(
    make: MakeScheme, mixing: Any, ranks: int, base: str, framework: str = "reference", *, apart: bool = True
) -> list[list[Values]]:
    """The courses are those of matrices that mix the models before or after each update."""
    courses, _ = train(make, ranks, BASES[base], framework, apart=apart)
    expected = simulated(mixing, ranks, BASES[base], framework, apart=apart)
    for received, course in zip(courses, expected, strict=True):
        check_equal(received, course)
    return courses


def check_dpsgd(matrix: np.ndarray, make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Models are mixed by a matrix before the update, and ranks come together."""
    courses = check_recurrence(make, lambda step: (np.eye(ranks), matrix), ranks, base, framework)
    assert ranks == 1 or consensus_distance(courses, -1) < 0.5 * consensus_distance(courses, 0)


def check_local_sgd(period: int, make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Models are averaged after every period."""

    def mixing(step: int) -> tuple[np.ndarray, np.ndarray]:
        mean = np.full((ranks, ranks), 1 / ranks)
        return (mean if step % period == 0 else np.eye(ranks)), np.eye(ranks)

    check_recurrence(make, mixing, ranks, base, framework)


def check_gossip(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Models are averaged in the pairs that the scheme names, after the update."""
    scheme = make()
    assert isinstance(scheme, Gossip)

    def mixing(step: int) -> tuple[np.ndarray, np.ndarray]:
        matrix = np.zeros((ranks, ranks))
        for rank in range(ranks):
            matrix[rank, rank] += 0.5
            matrix[rank, scheme.partner(step, rank, ranks)] += 0.5
        assert (matrix == matrix.T).all()
        assert (matrix.sum(axis=0) == 1).all()
        return matrix, np.eye(ranks)

    check_recurrence(make, mixing, ranks, base, framework)


def still(base: str) -> Any:
    """Return a maker of an optimizer that changes nothing."""
    kept = BASES[base]
    assert isinstance(kept, functools.partial)
    return functools.partial(kept.func, **{**kept.keywords, "learning_rate": 0.0})


def check_mean_is_kept(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Without updates the mean of all models stays, and ranks come together."""
    courses, _ = train(make, ranks, still(base), framework, steps=8, apart=True)
    for step in range(1, 9):
        assert distance(mean_of(courses, step), mean_of(courses, 0)) <= 1e-14
        assert consensus_distance(courses, step) <= consensus_distance(courses, step - 1) + 1e-14
    assert ranks == 1 or consensus_distance(courses, -1) < 0.2 * consensus_distance(courses, 0)


# --- the published average of gradients ---


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


def check_is_the_printed(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """The course is that of the published optimizer, which counts the neighbour of two ranks twice."""
    if ranks == 2:
        check_every_rank(make, ranks, base, framework)
        return
    printed, _ = train(AllReduce, ranks, BASES[base], framework, apart=True, kind=PrintedNeighbors)
    courses, _ = train(make, ranks, BASES[base], framework, apart=True)
    for received, course in zip(courses, printed, strict=True):
        check_equal(received, course)


def check_every_rank(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Every rank's course is that of one process with the minibatches of all ranks, but not with the same bits."""
    courses, _ = train(make, ranks, BASES[base], framework)
    for course in courses:
        check_equal(course, one_process(ranks, BASES[base], framework))


def check_ranks_stay_apart(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """Gradients are averaged, not models: what parts the ranks stays."""
    courses, _ = train(make, ranks, BASES[base], framework, apart=True)
    assert ranks == 1 or consensus_distance(courses, -1) > 0.5 * consensus_distance(courses, 0)


# --- compression ---


def recording(kind: Any) -> type:
    class Recording(kind):
        """Adds up the gradients that it is given, and those that it returns."""

        _sums = (0.0, 0.0)

        def after_backward(self, context: StepContext) -> None:
            given = np.concatenate([buffer.array for buffer in context.gradients])
            super().after_backward(context)
            used = np.concatenate([buffer.array for buffer in context.gradients])
            self._sums = (self._sums[0] + given, self._sums[1] + used)

    return Recording


def check_nothing_is_lost(
    make: MakeScheme, ranks: int, base: str = "Momentum", framework: str = "reference", steps: int = 6
) -> None:
    """What all ranks were given is what they used, plus what they keep; and the replicas have the same bits."""
    watch = lambda optimizer: (optimizer.scheme._sums, optimizer.scheme.residuals)  # noqa: E731
    courses, found = train(derived(make, recording), ranks, BASES[base], framework, steps=steps, watch=watch)
    check_replicas(courses)
    given = sum(sums[0] for sums, _ in found)
    kept = sum(np.concatenate(list(residuals.values())) for _, residuals in found)
    used = ranks * found[0][0][1]
    assert np.abs(used + kept - given).max() <= TOLERANCE * np.abs(given).max()
    assert np.abs(kept).max() > 0.01 * np.abs(given).max(), "nothing was left out, so that nothing was tested"


def check_unbiased(make: MakeScheme, ranks: int, base: str, framework: str = "reference", draws: int = 60) -> None:
    """The mean of many exchanges of the same gradients is their mean, and the replicas have the same bits.

    The gradients of all steps are those of one minibatch, since nothing is updated. Each element's rounding lies in
    one gap between levels, so Hoeffding's inequality bounds the mean of independent ones; Bonferroni over the elements.
    The second test is of the sum of all elements' errors towards 0, where a small bias of each adds up. Either fails
    with a probability below ``ERROR`` where the rounding is unbiased.
    """
    scheme = make()
    assert isinstance(scheme, QSGD)
    watch = lambda optimizer: optimizer.scheme._sums  # noqa: E731 - as short as it is
    data = batches(1, size=SHARE * ranks) * draws
    courses, found = train(derived(make, recording), ranks, still(base), framework, data=data, watch=watch)
    check_replicas(courses)
    given = np.stack([sums[0] / draws for sums in found])  # of each rank, [ranks, elements]
    starts = np.arange(0, given.shape[1], scheme.block)
    norms = np.sqrt(np.add.reduceat(given**2, starts, axis=1))
    gaps = np.repeat(norms, scheme.block, axis=1)[:, : given.shape[1]] / scheme.levels
    widths = np.sqrt((gaps**2).sum(axis=0)) / ranks  # of the mean over ranks
    likely = math.log(2 * given.shape[1] / ERROR) / (2 * draws)
    errors = found[0][1] / draws - given.mean(axis=0)
    worst = float((np.abs(errors) - widths * math.sqrt(likely)).max())
    assert worst <= TOLERANCE, f"an element is biased by {worst:.1e}"
    signs = np.sign(given.mean(axis=0))
    limit = math.sqrt((widths**2).sum() * math.log(2 / ERROR) / (2 * draws))
    assert abs(float(errors @ signs)) <= limit, f"all elements together are biased by {float(errors @ signs):.1e}"


def check_learns_as_allreduce(make: MakeScheme, ranks: int, base: str, framework: str = "reference") -> None:
    """The course stays near that of exact gradients, but is another, and the replicas have the same bits."""
    courses, _ = train(make, ranks, BASES[base], framework, steps=6)
    check_replicas(courses)
    exact = one_process(ranks, BASES[base], framework, steps=6)
    assert 1e-9 < distance(courses[0][-1], exact[-1]) < 0.05


# --- servers that do not wait for all ---


def check_log(log: list[list[int]], ranks: int, steps: int, bound: int | None = None) -> None:
    """Every gradient is in the log once, of a version that was there, and no rank is too far ahead."""
    clocks = dict.fromkeys(range(ranks), 0)
    updates = 0
    for rank, version in log:
        if version == FINISHED:
            assert clocks.pop(rank) == steps
            continue
        assert 0 <= version <= updates
        assert bound is None or clocks[rank] - min(clocks.values()) <= bound, "a rank is too far ahead"
        clocks[rank] += 1
        updates += 1
    assert not clocks
    assert updates == ranks * steps


def slowed(kind: Any) -> type:
    class Slowed(kind):
        """Rank 1 is slow."""

        def before_backward(self, context: StepContext) -> None:
            super().before_backward(context)
            time.sleep(0.02 * (context.communicator.rank == 1))

    return Slowed


def check_replay(
    bound: int | None, make: Callable[..., Scheme], ranks: int, base: str, framework: str = "reference"
) -> None:
    """A run's log is one of a server, keeps the bound, and replays with the same bits."""
    watch = lambda o: (o.scheme.log, parameters_of(o.executor))  # noqa: E731
    _, found = train(derived(make, slowed), ranks, BASES[base], framework, watch=watch)
    log = found[0][0]
    check_log(log, ranks, 4, bound)
    check_replicas([[values] for _, values in found])
    courses, again = train(functools.partial(make, replay=log), ranks, BASES[base], framework, watch=watch)
    assert again[0][0] == log
    check_replicas([[values] for _, values in [*found, *again]])
    assert distance(again[0][1], courses[0][0]) > 1e-3


def noting(kind: Any) -> type:
    class Noting(kind):
        """Keeps the gradients of its rank, before they go anywhere."""

        _noted: Sequence[Values] = ()

        def after_backward(self, context: StepContext) -> None:
            names = context.gradients.names
            self._noted = [*self._noted, {name: context.gradients[name].copy() for name in names}]
            super().after_backward(context)

    return Noting


def formula_of(base: str) -> Oracle:
    """Return the published formula of a base optimizer, with its numbers."""
    name = {"SGD": "gradient_descent", "Momentum": "momentum", "Adam": "adam"}[base]
    made = BASES[base]
    assert isinstance(made, functools.partial)
    return CASES[name][0].oracle(**made.keywords)


def check_no_gradient_is_lost(
    make: MakeScheme, ranks: int = 3, base: str = "SGD", framework: str = "reference", steps: int = 4
) -> None:
    """The parameters are what the published formula makes of every rank's gradients, each once, in the log's order."""
    watch = lambda o: (o.scheme.log, o.scheme._noted, parameters_of(o.executor))  # noqa: E731
    courses, found = train(derived(make, noting), ranks, BASES[base], framework, steps=steps, watch=watch)
    gradients = [iter(noted) for _, noted, _ in found]
    order = [rank for rank, version in found[0][0] if version != FINISHED]
    formula, values = formula_of(base), courses[0][0]
    for rank in order:
        gradient = next(gradients[rank])
        values = formula(values, lambda _, found=gradient: (0.0, found))
    assert all(next(rest, None) is None for rest in gradients), "a gradient was never used"
    check_equal([found[0][2]], [values], start=courses[0][0])
