"""ONNX LpPool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._lp import norm_slope, power, root
from deep500.operators.library._pooling import Pooling
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.library._windows import padded, unpadded
from deep500.operators.operator import Array, OptionalArray
from deep500.operators.windows import Windows

__all__ = ["LpPool"]


class LpPool(Pooling):
    r"""Lp norm of every window over the spatial axes.

    .. math::
        Y_{n,c,o} = \Big(\sum_k |X_{n,\,c,\,o \cdot \text{strides} + k \cdot \text{dilations} - \text{pads}}|^p
        \Big)^{1/p}

    with zeros in the padding. Input X ``[N, C, D1, ...]``, output Y ``[N, C, o1, ...]``, both float16, bfloat16,
    float32 or float64; 16-bit floats are accumulated in float32. The derivative of a norm that is 0 is taken to be 0.

    Source: ONNX LpPool, version 22.
    """

    def __init__(self, *, p: int = 2, **window: Any) -> None:
        """Set the attributes.

        Args:
            p: Which norm, from 1 on.
            **window: Those of the window; see :class:`~deep500.operators.library._pooling.Pooling`.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(**window)
        self.p = attributes.integer("LpPool", "p", p, minimum=1)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: X is not of floats or has no spatial axis, or no window fits into it.
        """
        x, windows = self._read(inputs)
        return (self._norm(x, windows)[1].astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X."""
        if grads[0] is None:
            return (None,)
        x, windows = self._read(fwd_inputs)
        seen, norm = self._norm(x, windows)
        gradient = np.asarray(grads[0]).astype(seen.dtype, copy=False)
        total = np.zeros((*x.shape[:2], *windows.span), seen.dtype)
        for offset in windows.offsets():
            total[offset] += gradient * norm_slope(seen[offset], norm, self.p)
        return returned([unpadded(total, windows)], fwd_inputs)

    def _norm(self, x: Array, windows: Windows) -> tuple[Array, Array]:
        """Return what the windows see, and the norm of every window, in the dtype to compute in."""
        seen = padded(x, windows, 0, compute_dtype(x.dtype))
        total = np.zeros((*x.shape[:2], *windows.output), seen.dtype)
        for offset in windows.offsets():
            total += power(seen[offset], self.p)
        return seen, root(total, self.p)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Windows]:
        x = present(take_inputs("LpPool", inputs, ["X"])[0])
        check_dtypes("LpPool", ["X"], [x], "floats")
        if x.ndim < 3:
            raise OperatorError(f"LpPool: received X of shape {x.shape}; accepted is [N, C, D1, ...], rank 3 or more.")
        return x, self.windows.plan(x.shape[2:])
