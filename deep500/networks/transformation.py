"""Transformations: one network turned into another that computes the same, and the check that it does."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.registry import Registry
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.random_inputs import random_inputs
from deep500.networks.validation._comparing import compare_tensors, largest
from deep500.networks.validation._single_node import draws_numbers, reduction_length, with_intermediates
from deep500.networks.validation.ladder import ExecutorFactory
from deep500.networks.validation.report import TensorComparison

__all__ = ["TRANSFORMATIONS", "Transformation", "compare_runs", "transform"]

#: The transformations, one file each in ``deep500/networks/transforms``.
TRANSFORMATIONS = Registry("transformation", "deep500.networks.transforms")


class Transformation(abc.ABC):
    """Turns a network into another one.

    A parameter that keeps its name keeps its meaning: its gradient in the new network is its gradient in the old one. A
    parameter that means something else has another name.
    """

    @property
    def name(self) -> str:
        """How messages call it."""
        return type(self).__name__

    @property
    def relative_error(self) -> float:
        """What results may differ by, relative to the largest, beyond a different order of sums."""
        return 0.0

    def sizes(self, network: Network) -> Mapping[str, int]:
        """Return the symbolic sizes with which the networks are to be compared, by name."""
        return {}

    def check(self, network: Network) -> None:
        """Check the preconditions.

        Raises:
            InvalidInputError: The network has not what the transformation was asked to change.
            InvalidNetworkError: The network is none of those that are accepted; the message names the node.
        """

    @abc.abstractmethod
    def apply(self, network: Network) -> Network:
        """Return the new network. The given one fulfils the preconditions and is not changed."""

    def check_result(self, network: Network, result: Network) -> None:
        """Check the postconditions: by default that inputs, outputs and losses are those of the network.

        Raises:
            InvalidNetworkError: They are not; the transformation has a bug.
        """
        for what in ("inputs", "outputs", "losses"):
            wanted, found = getattr(network, what), getattr(result, what)
            if wanted != found:
                raise InvalidNetworkError(
                    f"{self.name} turned the {what} {_described(wanted)} of network {network.name!r} into "
                    f"{_described(found)}; they must stay."
                )


def transform(
    network: Network,
    transformation: str | Transformation,
    *,
    executor: ExecutorFactory | None = None,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Network:
    """Apply a transformation, check what it promises, and compare both networks where an executor is given.

    Args:
        network: The network; it is not changed.
        transformation: A transformation, or the name of one that needs no arguments.
        executor: Runs both networks, such as ``deep500.frameworks.reference.from_model``. Outputs, losses, and the
            gradients of the first loss by all parameters that both have must then agree.
        inputs: What both networks are fed with; random tensors by default.
        seed: Seed of the random inputs.

    Raises:
        InvalidInputError: An argument is not accepted, or a precondition is not fulfilled.
        InvalidNetworkError: A precondition is not fulfilled, or the result is not what it must be.
        UnknownNameError: There is no such transformation.
    """
    if not isinstance(network, Network):
        raise InvalidInputError(
            f"transform was given {shown(network)}; accepted is a Network (Network.load reads one)."
        )
    if executor is not None and not callable(executor):
        raise InvalidInputError(
            f"executor was given as {shown(executor)}; accepted is what makes one of a network, such as "
            f"reference.from_model."
        )
    if inputs is not None and executor is None:
        raise InvalidInputError("Inputs were given without an executor to run them; give both or neither.")
    found = _found(transformation)
    found.check(network)
    result = found.apply(network)
    found.check_result(network, result)
    if executor is not None:
        feeds = random_inputs(network, found.sizes(network), seed) if inputs is None else dict(inputs)
        if set(result.inputs) - set(feeds):
            feeds = {**random_inputs(result, seed=seed), **feeds}
        wrong = [row for row in compare_runs(network, executor, result, executor, feeds, found) if not row.agrees]
        if wrong:
            raise InvalidNetworkError(
                f"{found.name} changed what network {network.name!r} computes under {wrong[0].framework}: "
                f"{'; '.join(map(str, wrong[:4]))}{f'; and {len(wrong) - 4} more' if len(wrong) > 4 else ''}."
            )
    return result


def compare_runs(
    network: Network,
    executor: ExecutorFactory,
    result: Network,
    result_executor: ExecutorFactory,
    inputs: Mapping[str, Any],
    transformation: Transformation | None = None,
) -> list[TensorComparison]:
    """Run two networks on the same inputs and compare outputs, losses and gradients.

    What is allowed follows from the dtypes and from the lengths of all reductions of the first network
    (:mod:`deep500.measure.tolerance`). Gradients are compared relative to the largest of all: one that cancels to
    nearly 0, such as that of a bias before a normalisation, is made of rounding errors.

    Args:
        network: The network that is right.
        executor: Makes what runs it.
        result: The network that is compared with it.
        result_executor: Makes what runs that.
        inputs: A value for every input; those that only ``result`` has are left out of the first.
        transformation: Says what is allowed beyond a different order of sums.

    Raises:
        InvalidInputError: A network draws random numbers, so that there is nothing to compare.
    """
    own = {name: value for name, value in inputs.items() if name in network.inputs}
    program = network.program(frozenset(own))
    for node in (*program.nodes, *result.program(frozenset(inputs)).nodes):
        if draws_numbers(node):
            raise InvalidInputError(f"{node.label} draws numbers, so that two runs differ. Compare in evaluation mode.")
    loss = next((name for name in network.losses if name in program.losses), None)
    _, expected = _run(executor(with_intermediates(network)), own, loss)
    other, found = _run(result_executor(result), inputs, loss)
    values = {**{n: np.asarray(x) for n, x in own.items()}, **_stored(network), **expected}
    length = min(sum(reduction_length(node, values) for node in program.nodes) or 1, 10**6)
    gradients = [name for name in expected if name.startswith(_GRADIENT) and name in found]
    scale = max((largest(expected[name]) for name in gradients), default=0.0)
    extra = transformation.relative_error if transformation is not None else 0.0
    rows = []
    for name in (*program.outputs, *gradients):
        is_gradient = name in gradients
        row = compare_tensors(
            other.framework,
            name if is_gradient else f"output {name!r}",
            _like(found.get(name), expected[name]),
            expected[name],
            length=2 * length if is_gradient else length,
            scale=scale if is_gradient else 0.0,
        )
        rows.append(_with_allowance(row, 2 * extra if is_gradient else extra))
    return rows


_GRADIENT = "gradient of "


def _run(executor: GraphExecutor, inputs: Mapping[str, Any], loss: str | None) -> tuple[GraphExecutor, dict[str, Any]]:
    """Return outputs, and gradients where there is a loss."""
    if loss is None:
        return executor, {n: executor.value_to_numpy(v) for n, v in executor.inference(inputs).items()}
    outputs = executor.inference_and_backprop(inputs, loss)
    results = {name: executor.value_to_numpy(value) for name, value in outputs.items()}
    for parameter, gradient in executor.network.gradient(loss):
        results[f"{_GRADIENT}{parameter!r}"] = executor.network.fetch_tensors([gradient])[0]
    return executor, results


def _stored(network: Network) -> dict[str, Any]:
    names = [*network.parameters, *network.states, *network.constants]
    return dict(zip(names, network.fetch_tensors(names)))


def _like(found: Any, expected: Any) -> Any:
    """Return a floating tensor in the dtype of the one that it is compared with: it may be of another precision."""
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        return found
    both_float = all(x.dtype.name in ("float16", "bfloat16", "float32", "float64") for x in (found, expected))
    return found.astype(expected.dtype) if both_float else found


def _with_allowance(row: TensorComparison, relative: float) -> TensorComparison:
    allowed = row.allowed + relative * row.scale
    return TensorComparison(row.framework, row.what, row.error, row.scale, allowed, row.problem)


def _found(transformation: Any) -> Transformation:
    if isinstance(transformation, str):
        made = TRANSFORMATIONS.get(transformation)
        try:
            transformation = made()
        except TypeError as error:
            raise InvalidInputError(
                f"The transformation {made.__name__} needs arguments; give an object of it instead of its name: {error}"
            ) from error
    if not isinstance(transformation, Transformation):
        raise InvalidInputError(
            f"A transformation was given as {shown(transformation)}; accepted are objects of Transformation and names "
            f"(deep500 list transformations)."
        )
    return transformation


def _described(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in values.items()) or "(none)"
