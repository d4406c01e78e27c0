"""ONNX LRN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["LRN"]


class LRN(Operator):
    r"""Local response normalisation: divide by a power of the squares of neighbouring channels.

    .. math::
        y_c = x_c \Big/ \Big(\text{bias} + \frac{\alpha}{\text{size}} \sum_i x_i^2\Big)^\beta

    over the channels i from :math:`c - \lfloor (\text{size} - 1) / 2 \rfloor` to
    :math:`c + \lceil (\text{size} - 1) / 2 \rceil`. Input and output ``[N, C, D1, ...]``, float16, bfloat16, float32 or
    float64; 16-bit floats are computed in float32.

    Source: ONNX LRN, version 13; A. Krizhevsky et al., ImageNet classification with deep convolutional neural networks.
    """

    def __init__(self, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> None:
        """Set the attributes.

        Args:
            size: Number of channels over which squares are added up.
            alpha: Factor of their mean.
            beta: The exponent.
            bias: What is added to the squares.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.size = attributes.integer("LRN", "size", size, minimum=1)
        self.alpha = attributes.real("LRN", "alpha", alpha)
        self.beta = attributes.real("LRN", "beta", beta)
        self.bias = attributes.real("LRN", "bias", bias)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute y.

        Raises:
            OperatorError: The input is not of floats, or its rank is below 2.
        """
        dtype = np.asarray(inputs[0]).dtype
        x = _read(inputs)
        return (np.asarray(x * self._base(x) ** x.dtype.type(-self.beta)).astype(dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradient by x.

        With :math:`d` the base of the power, :math:`g_c d_c^{-\beta} - 2 \beta \frac{\alpha}{\text{size}} x_c \sum_j
        g_j x_j d_j^{-\beta - 1}` over the channels j whose sums hold :math:`x_c^2`.
        """
        if grads[0] is None:
            return (None,)
        x = _read(fwd_inputs)
        gradient = np.asarray(grads[0]).astype(x.dtype, copy=False)
        base = self._base(x)
        scaled = gradient * base ** x.dtype.type(-self.beta)
        reach_back, reach_on = (self.size - 1) // 2, self.size // 2
        through = _channel_sums(scaled * x / base, reach_on, reach_back)
        return returned([scaled - x.dtype.type(2 * self.beta * self.alpha / self.size) * x * through], fwd_inputs)

    def _base(self, x: Array) -> Array:
        sums = _channel_sums(np.square(x), (self.size - 1) // 2, self.size // 2)
        return np.asarray(x.dtype.type(self.bias) + x.dtype.type(self.alpha / self.size) * sums)


def _channel_sums(x: Array, before: int, after: int) -> Array:
    """Return the sums over each channel, so many before and so many after it."""
    channels = x.shape[1]
    total: Array = np.zeros_like(x)
    for shift in range(-min(before, channels), min(after, channels) + 1):
        first, last = max(0, -shift), channels - max(0, shift)
        if first < last:
            total[:, first:last] += x[:, first + shift : last + shift]
    return total


def _read(inputs: Sequence[OptionalArray]) -> Array:
    """Check the input; return it in the dtype to compute in."""
    x = present(take_inputs("LRN", inputs, ["X"])[0])
    check_dtypes("LRN", ["X"], [x], "floats")
    if x.ndim < 2:
        raise OperatorError(f"LRN: received X of shape {x.shape}; accepted is [N, C, D1, ...].")
    return x.astype(compute_dtype(x.dtype), copy=False)
