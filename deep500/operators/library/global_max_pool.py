"""ONNX GlobalMaxPool."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import check_dtypes, present, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["GlobalMaxPool"]


class GlobalMaxPool(Operator):
    r"""Maximum over all spatial axes.

    .. math::
        Y_{n,c} = \max_p X_{n,c,p}

    Input X ``[N, C, D1, ...]``, output Y ``[N, C, 1, ...]``, both float16, bfloat16, float32 or float64. Of several
    maxima the first one in row-major order receives the gradient; a NaN is the maximum.

    Source: ONNX GlobalMaxPool, version 22.
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: X is not of floats, its rank is below 2, or a spatial axis is empty.
        """
        x = _read(inputs)
        return (np.asarray(x.max(axis=tuple(range(2, x.ndim)), keepdims=True)),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of Y, at the maximum."""
        if grads[0] is None:
            return (None,)
        x = _read(fwd_inputs)
        flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
        by_x = np.zeros(flat.shape, x.dtype)
        places = flat.argmax(axis=2)[..., None]
        np.put_along_axis(by_x, places, np.asarray(grads[0]).reshape(places.shape).astype(x.dtype, copy=False), axis=2)
        return (by_x.reshape(x.shape),)


def _read(inputs: Sequence[OptionalArray]) -> Array:
    """Check the input."""
    x = present(take_inputs("GlobalMaxPool", inputs, ["X"])[0])
    check_dtypes("GlobalMaxPool", ["X"], [x], "floats")
    if x.ndim < 2 or 0 in x.shape[2:]:
        raise OperatorError(
            f"GlobalMaxPool: received X of shape {x.shape}; accepted is [N, C, D1, ...] without empty spatial axes."
        )
    return x
