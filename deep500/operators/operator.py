"""The contract of an operator: a forward function and its vector-Jacobian product."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Operator", "OptionalArray"]

Array = NDArray[Any]
OptionalArray = NDArray[Any] | None


class Operator(abc.ABC):
    """A function of tensors with a backward of its own.

    The attributes of an operator are the keyword arguments of its constructor; the tensors are those of
    :meth:`forward`. An operator keeps no state between calls: one instance may serve several nodes and threads.
    """

    @abc.abstractmethod
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the outputs.

        Args:
            inputs: One array an input, ``None`` for an optional input that is absent. They are not modified.

        Returns:
            One array an output, in the dtype that the specification gives.
        """

    @abc.abstractmethod
    def backward(
        self,
        grads: Sequence[OptionalArray],
        fwd_inputs: Sequence[OptionalArray],
        fwd_outputs: Sequence[OptionalArray],
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradients of a scalar :math:`L` by the inputs from those by the outputs.

        Args:
            grads: :math:`\partial L / \partial y_i` for every output, of that output's shape and dtype; ``None`` where
                :math:`L` does not depend on the output. May end before outputs that nobody uses.
            fwd_inputs: What :meth:`forward` was given.
            fwd_outputs: What :meth:`forward` returned; ``None`` for, or ending before, outputs that nobody kept.

        Returns:
            :math:`\partial L / \partial x_j` for every input, of that input's shape and dtype; ``None`` for absent
            inputs and for inputs by which the operator is not differentiable (integers, shapes, statistics).
        """

    def __call__(self, *inputs: OptionalArray) -> Any:
        """Run :meth:`forward`; return the array when there is one output, else the tuple."""
        outputs = self.forward([None if x is None else np.asarray(x) for x in inputs])
        return outputs[0] if len(outputs) == 1 else outputs
