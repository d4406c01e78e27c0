"""ONNX Transpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Transpose"]


class Transpose(Operator):
    r"""Permute axes: axis ``i`` of the output is axis ``perm[i]`` of the input.

    Input of any dtype and shape; the output is a view of it.

    Source: ONNX Transpose, version 25.
    """

    def __init__(self, *, perm: Sequence[int] | None = None) -> None:
        """Set the attribute.

        Args:
            perm: The permutation; by default the axes are reversed.

        Raises:
            OperatorError: It is not a permutation.
        """
        self.perm = attributes.integers("Transpose", "perm", perm)
        if self.perm is not None and sorted(self.perm) != list(range(len(self.perm))):
            raise OperatorError(
                f"Transpose: the attribute perm is {perm!r}; accepted is every axis from 0 to r - 1 exactly once."
            )

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Permute the axes.

        Raises:
            OperatorError: The permutation has another length than the input has axes.
        """
        x = present(take_inputs("Transpose", inputs, ["data"])[0])
        if self.perm is not None and len(self.perm) != x.ndim:
            raise OperatorError(
                f"Transpose: perm is {list(self.perm)} for data of shape {x.shape}; accepted are {x.ndim} entries."
            )
        return (x.transpose(self.perm),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input: the output's, permuted back."""
        if grads[0] is None or not is_float(np.asarray(fwd_inputs[0]).dtype):
            return (None,)
        inverse = None if self.perm is None else tuple(int(axis) for axis in np.argsort(self.perm))
        return returned([np.asarray(grads[0]).transpose(inverse)], fwd_inputs)
