"""ONNX PRelu."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._broadcast import unbroadcast
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["PRelu"]


class PRelu(Operator):
    r"""Rectified linear unit with a slope that is learned: :math:`y = x` for :math:`x \ge 0`, else :math:`y = s x`.

    Inputs: X, and slope, which broadcasts to X's shape; one dtype, a float or an integer. A vector of as many slopes as
    X ``[N, C, ...]`` has channels, which does not broadcast, holds one for each channel, as in models before version 7.
    The slope at 0 is s.

    Source: ONNX PRelu, version 16.
    """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute y.

        Raises:
            OperatorError: The dtypes differ or are not numbers, or the slopes do not broadcast.
        """
        x, slope = self._read(inputs)
        wide = compute_dtype(x.dtype)
        y = np.where(x >= 0, x.astype(wide, copy=False), slope.astype(wide, copy=False) * x)
        return (np.asarray(y).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X and the slopes."""
        x, slope = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None, None)
        wide = compute_dtype(x.dtype)
        gradient, x_wide, s = (np.asarray(t).astype(wide, copy=False) for t in (grads[0], x, slope))
        by_x = np.where(x_wide > 0, gradient, gradient * s)
        by_slope = unbroadcast(np.where(x_wide >= 0, wide.type(0), gradient * x_wide), slope.shape)
        return returned([by_x, by_slope.reshape(np.asarray(fwd_inputs[1]).shape)], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
        """Check the inputs; return X, and the slopes in a shape that broadcasts to it."""
        x, slope = map(present, take_inputs("PRelu", inputs, ["X", "slope"]))
        check_dtypes("PRelu", ["X", "slope"], [x, slope], "numbers")
        if _broadcasts(slope.shape, x.shape):
            return x, slope
        if slope.ndim == 1 and x.ndim > 1 and slope.size == x.shape[1]:
            return x, slope.reshape(-1, *[1] * (x.ndim - 2))
        raise OperatorError(
            f"PRelu: received X of shape {x.shape} and slopes of shape {slope.shape}; accepted are shapes that "
            f"broadcast to X's shape."
        )


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False
