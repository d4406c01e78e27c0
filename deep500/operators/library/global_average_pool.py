"""ONNX GlobalAveragePool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["GlobalAveragePool"]


class GlobalAveragePool(Operator):
    r"""Mean over all spatial axes.

    .. math::
        Y_{n,c} = \frac{1}{D_1 D_2 \cdots} \sum_p X_{n,c,p}

    Input X ``[N, C, D1, ...]``, output Y ``[N, C, 1, ...]``, both float16, bfloat16, float32 or float64; 16-bit floats
    are accumulated in float32.

    Source: ONNX GlobalAveragePool, version 22.
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: X is not of floats, its rank is below 2, or it has no elements to average.
        """
        x, axes, count = _read(inputs)
        with np.errstate(all="ignore"):
            total = x.sum(axis=axes, dtype=compute_dtype(x.dtype), keepdims=True)
        return ((total / total.dtype.type(count)).astype(x.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of Y, shared out evenly."""
        if grads[0] is None:
            return (None,)
        x, _, count = _read(fwd_inputs)
        wide = compute_dtype(x.dtype)
        share = np.asarray(grads[0]).astype(wide, copy=False) / wide.type(count)
        return returned([np.broadcast_to(share, x.shape).astype(x.dtype, copy=True)], fwd_inputs)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, tuple[int, ...], int]:
    """Check the input; return it, its spatial axes, and how many elements are averaged."""
    x = present(take_inputs("GlobalAveragePool", inputs, ["X"])[0])
    check_dtypes("GlobalAveragePool", ["X"], [x], "floats")
    if x.ndim < 2 or 0 in x.shape[2:]:
        raise OperatorError(
            f"GlobalAveragePool: received X of shape {x.shape}; accepted is [N, C, D1, ...] without empty spatial axes."
        )
    return x, tuple(range(2, x.ndim)), int(np.prod(x.shape[2:]))
