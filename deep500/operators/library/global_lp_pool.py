"""ONNX GlobalLpPool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._lp import norm_slope, power, root
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["GlobalLpPool"]


class GlobalLpPool(Operator):
    r"""Lp norm over all spatial axes.

    .. math::
        Y_{n,c} = \Big(\sum_o |X_{n,c,o}|^p\Big)^{1/p}

    Input X ``[N, C, D1, ...]``, output Y ``[N, C, 1, ...]``, both float16, bfloat16, float32 or float64; 16-bit floats
    are accumulated in float32. The derivative of a norm that is 0 is taken to be 0.

    Source: ONNX GlobalLpPool, version 22.
    """

    def __init__(self, *, p: int = 2) -> None:
        """Set the attribute.

        Args:
            p: Which norm, from 1 on.

        Raises:
            OperatorError: It is not a positive integer.
        """
        self.p = attributes.integer("GlobalLpPool", "p", p, minimum=1)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: X is not of floats, or its rank is below 2.
        """
        x, wide = _read(inputs)
        return (self._norm(wide).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X."""
        if grads[0] is None:
            return (None,)
        _, wide = _read(fwd_inputs)
        gradient = np.asarray(grads[0]).astype(wide.dtype, copy=False)
        return returned([gradient * norm_slope(wide, self._norm(wide), self.p)], fwd_inputs)

    def _norm(self, x: Array) -> Array:
        return root(power(x, self.p).sum(axis=tuple(range(2, x.ndim)), keepdims=True), self.p)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
    """Check the input; return it, and in the dtype to compute in."""
    x = present(take_inputs("GlobalLpPool", inputs, ["X"])[0])
    check_dtypes("GlobalLpPool", ["X"], [x], "floats")
    if x.ndim < 2:
        raise OperatorError(f"GlobalLpPool: received X of shape {x.shape}; accepted is [N, C, D1, ...].")
    return x, x.astype(compute_dtype(x.dtype), copy=False)
