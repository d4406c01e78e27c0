"""Training with schemes on ranks, and what it must be equal to, computed without any communicator.

Ranks are threads unless :func:`use` says otherwise: under ``mpiexec`` each process is one (tests/mpi/scheme_cases.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scheme import Scheme
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.optimizer import Optimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.conformance.optimizer_networks import batches
from tests.conformance.test_optimizers import distance, make_executor, parameters_of

#: Makes a base optimizer for an executor.
MakeBase = Callable[[GraphExecutor], Optimizer]

Values = dict[str, np.ndarray]

Result = TypeVar("Result")

#: What one rank does, with an executor of its own.
RankWork = Callable[[Communicator, GraphExecutor], Result]


class Ranks(Protocol):
    """Where trainings run."""

    def run(self, count: int, make: Callable[[], GraphExecutor], work: RankWork[Result]) -> list[Result]:
        """Do the work on each rank; return the results of all ranks, on every rank."""

    def once(self, compute: Callable[[], Result]) -> Result:
        """Compute once for all ranks."""


class ThreadRanks:
    """Ranks that are threads of this process."""

    def run(self, count: int, make: Callable[[], GraphExecutor], work: RankWork[Result]) -> list[Result]:
        executors = [make() for _ in range(count)]
        return run_threads(count, lambda communicator: work(communicator, executors[communicator.rank]), timeout_s=60)

    def once(self, compute: Callable[[], Result]) -> Result:
        return compute()


_ranks: list[Ranks] = [ThreadRanks()]


def use(ranks: Ranks) -> None:
    """Let all trainings from now on run on these ranks."""
    _ranks[0] = ranks


BASES: dict[str, MakeBase] = {
    "SGD": functools.partial(GradientDescent, learning_rate=0.2),
    "Momentum": functools.partial(MomentumOptimizer, learning_rate=0.1, momentum=0.8),
    "Adam": functools.partial(AdamOptimizer, learning_rate=0.01),
}

#: Samples of one rank in a minibatch.
SHARE = 3

TOLERANCE = 1e-12


def moved(executor: GraphExecutor, rank: int) -> None:
    """Move the parameters to where each rank has others."""
    random = np.random.default_rng(100 + rank)
    for name, value in parameters_of(executor).items():
        executor.network.feed_tensor(name, value + random.normal(size=value.shape) * 0.3)


def part_of(batch: dict[str, Any], rank: int) -> dict[str, Any]:
    """Return the samples of one rank in a minibatch of all."""
    return {name: values[rank * SHARE : (rank + 1) * SHARE] for name, values in batch.items()}


def train(
    make_scheme: Callable[[], Scheme | str],
    ranks: int,
    base: MakeBase,
    framework: str = "reference",
    steps: int = 4,
    *,
    apart: bool = False,
    kind: type[DistributedOptimizer] = DistributedOptimizer,
    data: Sequence[dict[str, Any]] | None = None,
    prepare: Callable[[DistributedOptimizer], None] | None = None,
    watch: Callable[[DistributedOptimizer], Any] | None = None,
    pause_after: int | None = None,
    dtype: str = "float64",
) -> tuple[list[list[Values]], list[Any]]:
    """Train on the ranks in use.

    Args:
        make_scheme: Makes the scheme of each rank.
        ranks: How many.
        base: Makes the base optimizer.
        framework: Of the executors.
        steps: How many.
        apart: Whether the ranks start with parameters of their own.
        kind: The distributed optimizer.
        data: Minibatches of all ranks together, instead of those of the steps.
        prepare: Called with the optimizer before the first step.
        watch: Called with the optimizer in the end.
        pause_after: Number of steps after which ``finish()`` is called in between.
        dtype: Of the network.

    Returns:
        For each rank the parameters at the start and after each step; and what ``watch`` returned on each rank.
    """
    data = batches(steps, dtype, size=SHARE * ranks) if data is None else data

    def run(communicator: Communicator, executor: GraphExecutor) -> tuple[list[Values], Any]:
        if apart:
            moved(executor, communicator.rank)
        scheme = make_scheme()
        optimizer = kind(base(executor), communicator, scheme, bucket_size_bytes=200, broadcasts_start=not apart)
        if prepare:
            prepare(optimizer)
        course = [parameters_of(executor)]
        for number, batch in enumerate(data):
            if number == pause_after:
                optimizer.finish()
            optimizer.step(part_of(batch, communicator.rank))
            course.append(parameters_of(executor))
        optimizer.finish()
        return course, watch(optimizer) if watch else None

    found = _ranks[0].run(ranks, lambda: make_executor(framework, dtype), run)
    return [course for course, _ in found], [watched for _, watched in found]


@functools.lru_cache(maxsize=32)
def one_process(
    ranks: int, base: MakeBase, framework: str = "reference", steps: int = 4, dtype: str = "float64"
) -> list[Values]:
    """Return the course of one process that has the minibatches of all ranks."""

    def compute() -> list[Values]:
        executor = make_executor(framework, dtype)
        optimizer, course = base(executor), [parameters_of(executor)]
        for batch in batches(steps, dtype, size=SHARE * ranks):
            optimizer.step(batch)
            course.append(parameters_of(executor))
        return course

    return _ranks[0].once(compute)


def simulated(
    mixing: Callable[[int], tuple[np.ndarray, np.ndarray]],
    ranks: int,
    base: MakeBase,
    framework: str = "reference",
    steps: int = 4,
    *,
    apart: bool = False,
) -> list[list[Values]]:
    r"""Return the course of all ranks by the recurrence of mixing matrices.

    .. math:: X_{t+1} = A_t (B_t X_t + U_t)

    with what the base optimizer of each rank adds to its own parameters, :math:`U_t`.

    Args:
        mixing: Returns A and B of the update 1, 2, ...
        ranks: How many.
        base: Makes the base optimizer, whose update must not depend on the parameters but through the gradient.
        framework: Of the executors.
        steps: How many.
        apart: Whether the ranks start with parameters of their own.
    """
    return _ranks[0].once(lambda: _mixed(mixing, ranks, base, framework, steps, apart))


def _mixed(
    mixing: Callable[[int], tuple[np.ndarray, np.ndarray]],
    ranks: int,
    base: MakeBase,
    framework: str,
    steps: int,
    apart: bool,
) -> list[list[Values]]:
    executors = [make_executor(framework) for _ in range(ranks)]
    if apart:
        for rank, executor in enumerate(executors):
            moved(executor, rank)
    optimizers = [base(executor) for executor in executors]
    courses = [[parameters_of(executor)] for executor in executors]
    for step, batch in enumerate(batches(steps, size=SHARE * ranks), start=1):
        after, before = mixing(step)
        old = [course[-1] for course in courses]
        for rank, optimizer in enumerate(optimizers):
            optimizer.step(part_of(batch, rank))
        added = [
            {name: value - old[rank][name] for name, value in parameters_of(executor).items()}
            for rank, executor in enumerate(executors)
        ]
        for name in old[0]:
            stack = np.tensordot(before, np.stack([values[name] for values in old]), 1)
            stack = np.tensordot(after, stack + np.stack([values[name] for values in added]), 1)
            for rank, executor in enumerate(executors):
                executor.network.feed_tensor(name, stack[rank])
        for executor, course in zip(executors, courses, strict=True):
            course.append(parameters_of(executor))
    return courses


def check_equal(
    received: Sequence[Values],
    expected: Sequence[Values],
    tolerance: float = TOLERANCE,
    *,
    start: Values | None = None,
) -> None:
    """Check that two courses are the same but for rounding, and that something moved.

    Args:
        received: Parameters after some steps.
        expected: Those of the oracle.
        tolerance: Relative to the largest element of each parameter.
        start: The parameters before the first step, where the courses do not begin with them.
    """
    assert len(received) == len(expected)
    assert distance(expected[0] if start is None else start, expected[-1]) > 1e-3, (
        "the oracle moved nothing, so that nothing was compared"
    )
    worst = max(distance(here, there) for here, there in zip(received, expected, strict=True))
    assert worst <= tolerance, f"the parameters part from the oracle's: {worst:.1e} relative"


def check_replicas(courses: Sequence[Sequence[Values]]) -> None:
    """Check that all ranks have the same bits after every step."""
    for course in courses[1:]:
        for here, there in zip(course, courses[0], strict=True):
            for name, value in here.items():
                assert value.tobytes() == there[name].tobytes(), f"replicas differ in {name}"


def consensus_distance(courses: Sequence[Sequence[Values]], step: int) -> float:
    """Return the root of the mean squared distance of the ranks from their mean."""
    flat = np.stack([np.concatenate([v.reshape(-1) for v in course[step].values()]) for course in courses])
    return float(np.sqrt(((flat - flat.mean(axis=0)) ** 2).sum(axis=1).mean()))


def mean_of(courses: Sequence[Sequence[Values]], step: int) -> Values:
    """Return the mean of the parameters over the ranks."""
    return {name: np.mean([course[step][name] for course in courses], axis=0) for name in courses[0][0]}
