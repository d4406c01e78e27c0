"""ONNX LpNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._lp import norm_slope, power, root
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["LpNormalization"]

_NAME = "LpNormalization"


class LpNormalization(Operator):
    r"""Divide by the L1 or L2 norm along an axis.

    .. math::
        y = x / \lVert x \rVert_p

    and 0 where the norm is 0; there the gradient is taken to be 0, too. Input and output: float16, bfloat16, float32 or
    float64 of one shape; 16-bit floats are computed in float32.

    Source: ONNX LpNormalization, version 22.
    """

    def __init__(self, *, axis: int = -1, p: int = 2) -> None:
        """Set the attributes.

        Args:
            axis: The axis; negative values count from the back.
            p: Which norm, 1 or 2.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.axis = attributes.integer(_NAME, "axis", axis)
        self.p = attributes.integer(_NAME, "p", p)
        if self.p not in (1, 2):
            raise OperatorError(f"{_NAME}: the attribute p is {p!r}; accepted is 1 or 2.")

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute y.

        Raises:
            OperatorError: The input is not of floats or does not have the axis.
        """
        dtype = np.asarray(inputs[0]).dtype
        x, norm = self._read(inputs)
        return (_divided(x, norm).astype(dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradient by x, :math:`(g - n \sum g y) / \lVert x \rVert` with the norm's derivative n."""
        if grads[0] is None:
            return (None,)
        x, norm = self._read(fwd_inputs)
        gradient = np.asarray(grads[0]).astype(x.dtype, copy=False)
        axis = normalise_axis(_NAME, self.axis, x.ndim)
        along = (gradient * _divided(x, norm)).sum(axis=axis, keepdims=True)
        return returned([_divided(gradient - norm_slope(x, norm, self.p) * along, norm)], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
        """Check the input; return it and its norms in the dtype to compute in."""
        x = present(take_inputs(_NAME, inputs, ["input"])[0])
        check_dtypes(_NAME, ["input"], [x], "floats")
        axis = normalise_axis(_NAME, self.axis, x.ndim)
        x = x.astype(compute_dtype(x.dtype), copy=False)
        return x, root(power(x, self.p).sum(axis=axis, keepdims=True), self.p)


def _divided(x: Array, norm: Array) -> Array:
    return np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)
