"""From a program to NumPy calls, and back: reverse-mode differentiation over the list of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import Deep500Error, InvalidNetworkError
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode
from deep500.networks.program import Program
from deep500.operators.operator import Operator

__all__ = ["Translation"]

Values = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Call:
    """One operator applied to named tensors."""

    node: OperatorNode
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Translation:
    """A program as a list of NumPy calls."""

    def __init__(self, program: Program) -> None:
        """Find the operator of every node.

        Raises:
            UnsupportedOperatorError: The library does not have one.
        """
        self.program = program
        self.calls = [Call(n, lowerings.find(n)(n), (*n.inputs, *n.captured), n.outputs) for n in program.nodes]
        trained = set(program.parameters)
        # Only calls that a parameter reaches take part in the backward pass.
        self.differentiated = []
        for call in self.calls:
            reached = not trained.isdisjoint(call.inputs)
            if reached:
                trained.update(call.outputs)
            self.differentiated.append(reached)
        self._trained = trained

    def forward(self, values: Values) -> Values:
        """Run all calls.

        Args:
            values: Inputs and stored tensors by name.

        Returns:
            The same dictionary, with every computed tensor added.
        """
        for call in self.calls:
            arguments = [values[name] if name else None for name in call.inputs]
            try:
                results = call.operator.forward(arguments)
            except Deep500Error as error:
                raise type(error)(f"{call.node.label}: {error}") from error
            if len(results) < len(call.outputs):
                raise InvalidNetworkError(
                    f"{call.node.label} has {len(call.outputs)} outputs; NumPy's operator gives {len(results)}."
                )
            values.update((name, result) for name, result in zip(call.outputs, results) if name)
        return values

    def backward(self, values: Mapping[str, NDArray[Any]], loss: str) -> Values:
        """Return the gradient of a scalar by every parameter that it depends on.

        Args:
            values: What :meth:`forward` returned.
            loss: Name of the scalar.
        """
        gradients: Values = {loss: np.ones_like(values[loss])}
        for call, reached in zip(reversed(self.calls), reversed(self.differentiated)):
            if reached and not gradients.keys().isdisjoint(call.outputs):
                self._differentiate(call, values, gradients)
        # Operators may hand one array on to several inputs; what is returned may be changed in place.
        return {name: np.array(gradients[name]) for name in self.program.parameters if name in gradients}

    def _differentiate(self, call: Call, values: Mapping[str, NDArray[Any]], gradients: Values) -> None:
        arguments = [values[name] if name else None for name in call.inputs]
        outputs = [values[name] if name else None for name in call.outputs]
        by_output = [gradients.get(name) if name else None for name in call.outputs]
        by_input = call.operator.backward(by_output, arguments, outputs)
        for name, gradient in zip(call.inputs, by_input):
            if not name or gradient is None or name not in self._trained:
                continue
            # A tensor used twice collects both contributions; a new array, since the first may be shared.
            gradients[name] = gradients[name] + gradient if name in gradients else gradient
