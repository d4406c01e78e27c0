"""From a program to NumPy calls, and back: reverse-mode differentiation over the list of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.frameworks.reference._calls import Calls, Course
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
        self._courses: dict[str, Course] = {}

    def forward(self, values: Values) -> Values:
        """Run all calls.

        Args:
            values: Inputs and stored tensors by name.

        Returns:
            The same dictionary, with every computed tensor added.
        """
        return self._calls.run(values)

    def course(self, loss: str) -> Course:
        """Return what is known of the backward from a scalar before it is made."""
        if loss not in self._courses:
            self._courses[loss] = self._calls.course(loss)
        return self._courses[loss]

    def backward(
        self,
        values: Mapping[str, NDArray[Any]],
        loss: str,
        after_call: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> Values:
        """Return the gradient of a scalar by every parameter that it depends on.

        Args:
            values: What :meth:`forward` returned.
            loss: Name of the scalar.
            after_call: Called before the sweep and after each call with how many have been differentiated, from the
                last one backwards, and the gradients so far.
        """
        gradients: dict[str, Any] = {loss: np.ones_like(values[loss])}
        tell = None if after_call is None else lambda count: after_call(count, gradients)
        self._calls.differentiate(values, gradients, tell)
        # Operators may hand one array on to several inputs; what is returned may be changed in place.
        return {name: np.array(gradients[name]) for name in self.program.parameters if name in gradients}
