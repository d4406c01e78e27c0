"""ONNX AveragePool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._pooling import Pooling
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.library._windows import padded, unpadded
from deep500.operators.operator import Array, OptionalArray
from deep500.operators.windows import Windows

__all__ = ["AveragePool"]


class AveragePool(Pooling):
    r"""Mean of every window over the spatial axes.

    .. math::
        Y_{n,c,p} = \frac{1}{|W_p|} \sum_k X_{n,\,c,\,p \cdot \text{strides} + k \cdot \text{dilations} - \text{pads}}

    where :math:`|W_p|` counts the window's elements that lie in X, or with ``count_include_pad`` in X and its padding;
    what lies beyond the padding (``ceil_mode`` allows it) is never counted. Input X ``[N, C, D1, ...]``, output Y
    ``[N, C, o1, ...]``, both float16, bfloat16, float32 or float64; 16-bit floats are accumulated in float32.

    A window without any element that counts gives 0 (ONNX does not say; PyTorch does the same).

    Source: ONNX AveragePool, version 22.
    """

    def __init__(self, *, count_include_pad: int = 0, **window: Any) -> None:
        """Set the attributes.

        Args:
            count_include_pad: 1 to count the zeros of the padding as elements.
            **window: Those of the window; see :class:`~deep500.operators.library._pooling.Pooling`.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(**window)
        self.count_include_pad = attributes.flag("AveragePool", "count_include_pad", count_include_pad)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: X is not of floats or has no spatial axis, or no window fits into it.
        """
        x, windows, divisor = self._read(inputs)
        seen = padded(x, windows, 0, divisor.dtype)
        y = np.zeros((*x.shape[:2], *windows.output), divisor.dtype)
        with np.errstate(all="ignore"):
            for offset in windows.offsets():
                y += seen[offset]
            y /= divisor
        return (y.astype(x.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of every Y is shared out over its window."""
        if grads[0] is None:
            return (None,)
        x, windows, divisor = self._read(fwd_inputs)
        share = np.asarray(grads[0]).astype(divisor.dtype, copy=False) / divisor
        total = np.zeros((*x.shape[:2], *windows.span), divisor.dtype)
        for offset in windows.offsets():
            total[offset] += share
        return returned([unpadded(total, windows)], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Windows, Array]:
        """Check the input; return it, where the windows lie, and how many elements of each count."""
        x = present(take_inputs("AveragePool", inputs, ["X"])[0])
        check_dtypes("AveragePool", ["X"], [x], "floats")
        if x.ndim < 3:
            raise OperatorError(f"AveragePool: received X of shape {x.shape}; accepted is [N, C, D1, ...].")
        windows = self.windows.plan(x.shape[2:])
        counts = np.maximum(windows.counts(include_pad=self.count_include_pad), 1)
        return x, windows, counts.astype(compute_dtype(x.dtype))
