"""From a program to NumPy calls, and back: reverse-mode differentiation over the list of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.frameworks.reference._calls import Calls
from deep500.networks.program import Program

__all__ = ["Translation", "Values"]

Values = dict[str, NDArray[Any]]


class Translation:
    """A program as a list of NumPy calls."""

    def __init__(self, program: Program) -> None:
        """Find the operator of every node.

        Raises:
            UnsupportedOperatorError: There is none for a node.
        """
        self.program = program
        self._calls = Calls(program.nodes, program.parameters)

    def forward(self, values: Values) -> Values:
        """Run all calls.

        Args:
            values: Inputs and stored tensors by name.

        Returns:
            The same dictionary, with every computed tensor added.
        """
        return self._calls.run(values)

    def backward(self, values: Mapping[str, NDArray[Any]], loss: str) -> Values:
        """Return the gradient of a scalar by every parameter that it depends on.

        Args:
            values: What :meth:`forward` returned.
            loss: Name of the scalar.
        """
        gradients = self._calls.differentiate(values, {loss: np.ones_like(values[loss])})
        # Operators may hand one array on to several inputs; what is returned may be changed in place.
        return {name: np.array(gradients[name]) for name in self.program.parameters if name in gradients}
