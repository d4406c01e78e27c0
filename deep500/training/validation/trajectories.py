r"""Do frameworks train alike? The ladder of :mod:`deep500.networks.validation` continued over steps of training.

All frameworks start from the same parameters and get the same minibatches. After each step, the distance of each
parameter from the reference's is measured, :math:`\|p - p_{\mathrm{ref}}\|_2 / \|p_{\mathrm{ref}}\|_2`.

**What is allowed** is what rounding may do to this very training: twins of the reference are trained beside it whose
parameters and inputs are disturbed before each step by a relative :math:`\gamma`, as large as the rounding errors of a
step can be by the lengths of its reductions (:mod:`deep500.measure.tolerance`). Errors grow in the twins as they do in
a framework: by the network's curvature, by Adam's division of small gradients by their size, by ReLUs that switch. A
framework that is more than :data:`SAFETY` times as far away as the twins have been so far has *parted*.

Where one parts, both make that step once more from the reference's parameters, node by node: either a node is the first
to differ, or the gradients agree and the update differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import Deep500Error, InvalidInputError, TrainingError
from deep500.core.random import random_stream
from deep500.core.texts import message_of, shown
from deep500.measure.tolerance import tolerance as derived_tolerance
from deep500.measure.tolerance import unit_roundoff
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.validation._single_node import (
    draws_numbers,
    is_floating,
    reduction_length,
    with_intermediates,
)
from deep500.networks.validation.ladder import ExecutorFactory, validate
from deep500.training.catalogue import OPTIMIZERS
from deep500.training.optimizer import Optimizer
from deep500.training.validation._batches import batches_of
from deep500.training.validation.trajectory_report import (
    Growth,
    Parting,
    TensorParting,
    Trajectory,
    TrajectoryReport,
)

__all__ = ["SAFETY", "compare_trajectories"]

#: How many times as far away as a disturbed twin a framework may be.
SAFETY = 4.0

#: Losses below this are compared by their difference.
_SMALL_LOSS = 1e-3

#: Longest sum of reductions that is reckoned with.
_LONGEST = 10**6

Values = dict[str, NDArray[Any]]


def compare_trajectories(
    network: Network,
    data: Any,
    frameworks: Sequence[Any],
    steps: int = 20,
    *,
    optimizer: Any = "gradient_descent",
    loss: str | None = None,
    batch_size: int = 32,
    seed: int = 0,
    tolerance: float | None = None,
    twins: int = 2,
    tell: Callable[[str], None] | None = None,
) -> TrajectoryReport:
    """Train a network under several frameworks side by side; tell where, and how fast, they part.

    Args:
        network: The network, with a loss; it is not changed.
        data: A data set, a sampler, a minibatch, or a list of minibatches; all frameworks get the same.
        frameworks: Two or more, the reference first: modules such as ``deep500.frameworks.pytorch``, or functions that
            make an executor of a network.
        steps: Number of training steps.
        optimizer: Name of an optimizer, its class, or a function of (executor, name of the loss); or a list of one for
            each framework.
        loss: Name of the loss; by default the network's only one.
        batch_size: Samples a minibatch of a data set.
        seed: Seed of the order of a data set, and of the twins' disturbances.
        tolerance: What is allowed of every distance, in place of what the twins say.
        twins: Number of disturbed twins of the reference; each costs as much as a training of the reference.
        tell: Is told what is being done, a few words each time.

    Raises:
        InvalidInputError: An argument is not accepted, or the network draws numbers (Dropout), so that frameworks
            differ from the first step on.
        Deep500Error: The reference cannot train the network.
    """
    factories = _factories(frameworks)
    makers = _makers(optimizer, len(factories))
    check_count("twins", twins, least=1, error=TrainingError)
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise InvalidInputError(f"tolerance was given as {shown(tolerance)}; accepted are finite numbers from 0.")
    found = _loss_of(network, loss)
    batches = batches_of(data, steps, batch_size=batch_size, seed=seed)
    source = network.detached().train()
    for node in source.program(frozenset(batches[0])).nodes:
        if draws_numbers(node):
            raise InvalidInputError(
                f"{node.label} draws numbers, so that frameworks differ from the first step on. Compare a network "
                f"without it, such as one with a dropout of 0."
            )
    comparison = _Comparison(source, factories, makers, found, tolerance, tell or (lambda text: None))
    return comparison.run(batches, twins, seed)


class _Comparison:
    """A comparison in progress."""

    def __init__(
        self,
        network: Network,
        factories: Sequence[ExecutorFactory],
        makers: Sequence[Callable[[GraphExecutor, str], Optimizer]],
        loss: str,
        tolerance: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self.network, self.factories, self.makers, self.loss = network, factories, makers, loss
        self.tolerance, self.tell = tolerance, tell
        self.failures: dict[str, str] = {}
        dtypes = {descriptor.dtype for descriptor in network.parameters.values()}
        self.dtype = max(dtypes, key=unit_roundoff, default="float32")

    def run(self, batches: Sequence[Mapping[str, Any]], twins: int, seed: int) -> TrajectoryReport:
        reference = _Trainee(self.network, self.factories[0], self.makers[0], self.loss)
        others = self._others(reference)
        noise = 0.0 if self.tolerance is not None else self._noise(batches[0])
        shadows = [
            _Twin(self.network, self.factories[0], self.makers[0], self.loss, noise, seed, number)
            for number in range(twins if self.tolerance is None else 0)
        ]
        limits: dict[str, list[float]] = {}
        for step, batch in enumerate(batches, 1):
            self.tell(f"step {step} of {len(batches)}")
            before = reference.stored()
            reference.step(batch)
            for shadow in shadows:
                shadow.step(batch)
            self._limit(limits, reference, shadows)
            for index, other in enumerate(others, 1):
                if other is None:
                    continue
                try:
                    other.step(batch)
                except Deep500Error as error:
                    self.failures[other.label] = f"at step {step}: {message_of(error)}"
                    others[index - 1] = None
                    continue
                other.compare(reference, limits)
                if other.parting is None and other.beyond:
                    self.tell(f"step {step}: {other.label} parts from {reference.label}, node by node")
                    other.parting = self._parting(step, other, index, before, batch)
        trained = [other for other in others if other is not None]
        return TrajectoryReport(
            network=self.network.name,
            optimizer=type(reference.optimizer).__name__,
            reference=reference.label,
            losses=tuple(reference.losses),
            trajectories=tuple(other.trajectory() for other in trained),
            allowed=tuple(limits["all parameters"]),
            noise=noise,
            failures=tuple(self.failures.items()),
        )

    def _others(self, reference: _Trainee) -> list[_Trainee | None]:
        others: list[_Trainee | None] = []
        for number, (factory, maker) in enumerate(zip(self.factories[1:], self.makers[1:], strict=True), 2):
            try:
                other = _Trainee(self.network, factory, maker, self.loss)
            except Deep500Error as error:
                self.failures[f"framework {number}"] = message_of(error)
                others.append(None)
                continue
            if other.label in (reference.label, *(o.label for o in others if o is not None)):
                other.label = f"{other.label} ({number})"
            others.append(other)
        return others

    def _noise(self, batch: Mapping[str, Any]) -> float:
        """Return the relative size of the rounding errors of one step, by the lengths of all reductions on its way."""
        executor = self.factories[0](with_intermediates(self.network))
        results = executor.inference(batch)
        values = {name: executor.value_to_numpy(value) for name, value in results.items()}
        names = [*self.network.parameters, *self.network.states, *self.network.constants]
        values |= dict(zip(names, self.network.fetch_tensors(names), strict=True))
        values |= {name: np.asarray(value) for name, value in batch.items()}
        nodes = self.network.program(frozenset(batch)).nodes
        length = min(sum(reduction_length(node, values) for node in nodes), _LONGEST)
        return derived_tolerance(self.dtype, max(length, 1)).relative

    def _limit(self, limits: dict[str, list[float]], reference: _Trainee, shadows: Sequence[_Twin]) -> None:
        """Append what is allowed after this step: SAFETY times the largest distance of a twin so far, or roundings."""
        least = SAFETY * unit_roundoff(self.dtype)
        for shadow in shadows:
            shadow.compare(reference, {})
        for name in (*reference.parameters, "all parameters", "loss"):
            row = limits.setdefault(name, [])
            if self.tolerance is not None:
                row.append(self.tolerance)
                continue
            farthest = max(shadow.distances[name][-1] for shadow in shadows)
            row.append(max(SAFETY * farthest, row[-1] if row else least))

    def _parting(self, step: int, other: _Trainee, index: int, before: Values, batch: Mapping[str, Any]) -> Parting:
        """Find out why a framework parts: run both from the reference's parameters, node by node."""
        tensors = tuple(sorted(other.beyond, key=lambda tensor: tensor.excess, reverse=True))
        network = self.network.detached().train()
        for name, value in before.items():
            network.feed_tensor(name, value)
        try:
            report = validate(network, [self.factories[0], self.factories[index]], batch, loss=self.loss)
        except Deep500Error as error:
            return Parting(step, tensors, f"What differs is not known: {message_of(error)}")
        framework = report.frameworks[0]
        node = report.first_diverging(framework)
        if node is not None:
            wrong = next(tensor for tensor in node.tensors if not tensor.agrees)
            cause = f"Given the same values, node {node.node!r} ({node.operator}) is the first to differ: {wrong}."
            return Parting(step, tensors, cause, node.node)
        apart = [row for row in report.outputs if not row.agrees]
        if apart:
            cause = f"Every node alone agrees; from the same parameters, {apart[0]}."
            return Parting(step, tensors, cause)
        kind = type(other.optimizer).__name__
        cause = f"From the same parameters, all outputs and gradients agree: it is the update by {kind} that differs."
        return Parting(step, tensors, cause)


class _Trainee:
    """One training: an executor, its optimizer, and what was measured of it."""

    def __init__(
        self,
        network: Network,
        factory: ExecutorFactory,
        maker: Callable[[GraphExecutor, str], Optimizer],
        loss: str,
    ) -> None:
        self.executor = factory(network.detached())
        self.optimizer = maker(self.executor, loss)
        if not isinstance(self.optimizer, Optimizer):
            raise InvalidInputError(f"The optimizer's function returned {shown(self.optimizer)}; it must return one.")
        self.label, self.loss = self.executor.framework, loss
        self.losses: list[float] = []
        self.parameters: Values = self._fetch(network.get_params())
        self.distances: dict[str, list[float]] = {}
        self.beyond: list[TensorParting] = []
        self.parting: Parting | None = None

    def step(self, batch: Mapping[str, Any]) -> None:
        outputs = self.optimizer.step(batch)
        self.losses.append(float(self.executor.to_numpy(outputs[self.loss])))
        self.parameters = self._fetch(list(self.parameters))

    def stored(self) -> Values:
        """Return parameters and states as they are."""
        return self.parameters | self._fetch(list(self.executor.network.states))

    def compare(self, reference: _Trainee, limits: Mapping[str, Sequence[float]]) -> None:
        """Measure the distances from the reference, and take note of those that are beyond what is allowed."""
        squares: list[tuple[float, float]] = []
        found: dict[str, float] = {}
        for name, value in self.parameters.items():
            wide = reference.parameters[name].astype(np.float64)
            apart = float(np.linalg.norm(value.astype(np.float64) - wide))
            size = float(np.linalg.norm(wide))
            squares.append((apart, size))
            found[name] = _ratio(apart, size)
        apart, size = (float(np.linalg.norm(column)) for column in zip(*squares, strict=True))
        found["all parameters"] = _ratio(apart, size)
        expected = reference.losses[-1]
        found["loss"] = _ratio(abs(self.losses[-1] - expected), max(abs(expected), _SMALL_LOSS))
        for name, distance in found.items():
            self.distances.setdefault(name, []).append(distance)
        checked = [name for name in found if name in limits and name != "all parameters"]
        self.beyond = [
            TensorParting(name, found[name], limits[name][-1])
            for name in checked
            if not found[name] <= limits[name][-1]  # NaN is beyond everything
        ]

    def trajectory(self) -> Trajectory:
        together = self.distances["all parameters"]
        return Trajectory(
            self.label,
            tuple(self.losses),
            tuple(together),
            {name: tuple(self.distances[name]) for name in self.parameters},
            tuple(self.distances["loss"]),
            self.parting,
            Growth.of(together),
        )

    def _fetch(self, names: Sequence[str]) -> Values:
        return dict(zip(names, self.executor.network.fetch_tensors(list(names)), strict=True)) if names else {}


class _Twin(_Trainee):
    """A training of the reference that is disturbed before each step."""

    def __init__(
        self,
        network: Network,
        factory: ExecutorFactory,
        maker: Callable[[GraphExecutor, str], Optimizer],
        loss: str,
        noise: float,
        seed: int,
        number: int,
    ) -> None:
        super().__init__(network, factory, maker, loss)
        self._noise, self._names, self._count = noise, (seed, "twin", number), 0

    def step(self, batch: Mapping[str, Any]) -> None:
        self._count += 1
        stream = random_stream(self._names[0], *self._names[1:], self._count)

        def disturbed(value: NDArray[Any]) -> NDArray[Any]:
            factors = 1.0 + self._noise * stream.uniform(-1.0, 1.0, value.shape)
            return np.asarray(value * factors).astype(value.dtype)

        for name, value in self.parameters.items():
            self.executor.network.feed_tensor(name, disturbed(value))
        arrays = {name: np.asarray(value) for name, value in batch.items()}
        super().step({name: disturbed(value) if is_floating(value) else value for name, value in arrays.items()})


def _ratio(apart: float, size: float) -> float:
    """Return a distance relative to a size; what is not finite is infinitely far away."""
    if not np.isfinite(apart) or not np.isfinite(size):
        return float("inf")
    return apart / size if size else apart


def _factories(frameworks: Any) -> list[ExecutorFactory]:
    listed = list(frameworks) if isinstance(frameworks, (list, tuple)) else []
    made = [getattr(framework, "from_model", framework) for framework in listed]
    if len(made) < 2 or not all(map(callable, made)):
        raise InvalidInputError(
            f"compare_trajectories was given the frameworks {shown(frameworks)}; accepted is a list of two or more, "
            f"the reference first, such as [deep500.frameworks.reference, deep500.frameworks.pytorch]."
        )
    return made


def _makers(optimizer: Any, count: int) -> list[Callable[[GraphExecutor, str], Optimizer]]:
    listed = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer] * count
    if len(listed) != count:
        raise InvalidInputError(
            f"{len(listed)} optimizers were given for {count} frameworks; accepted is one for each."
        )
    made = [OPTIMIZERS.get(entry) if isinstance(entry, str) else entry for entry in listed]
    for entry in made:
        if not callable(entry):
            raise InvalidInputError(
                f"An optimizer was given as {shown(entry)}; accepted are names (deep500 list optimizers), classes, and "
                f"functions of (executor, name of the loss)."
            )
    return made


def _loss_of(network: Any, loss: str | None) -> str:
    if not isinstance(network, Network):
        raise InvalidInputError(f"compare_trajectories was given {shown(network)}; accepted is a Network.")
    losses = list(network.losses)
    if loss is None and len(losses) == 1:
        return losses[0]
    known = [*losses, *network.outputs]
    if loss is None or loss not in known:
        raise InvalidInputError(
            f"The loss was given as {loss!r}; network {network.name!r} has the losses {', '.join(losses) or '(none)'}. "
            f"network.append_loss('SoftmaxCrossEntropyLoss') adds one."
        )
    return loss
