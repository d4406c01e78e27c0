"""ONNX MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["MaxUnpool"]

_NAME = "MaxUnpool"


class MaxUnpool(Operator):
    """Put every element back to the place from which MaxPool took it; all others are 0.

    Inputs: X ``[N, C, o1, ...]``, float16, bfloat16, float32 or float64; I, int64 of X's shape, places in the flattened
    output ``[N, C, D1, ...]`` with ``D = (o - 1) strides + kernel - pads``; optionally output_shape, int64. Where
    output_shape is larger than that, zeros are added at the end of the axes: I counts without them, as in ONNX'
    reference and test cases. Of several elements with one place the last one stays, and receives the gradient.

    Source: ONNX MaxUnpool, version 22.
    """

    def __init__(
        self, *, kernel_shape: Sequence[int], strides: Sequence[int] | None = None, pads: Sequence[int] | None = None
    ) -> None:
        """Set the attributes.

        Args:
            kernel_shape: Elements of MaxPool's window along every spatial axis.
            strides: Distance between windows, by default 1 along every axis.
            pads: MaxPool's padding before every axis, then after every axis; by default none.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.kernel_shape = attributes.integers(_NAME, "kernel_shape", kernel_shape, minimum=1) or ()
        rank = len(self.kernel_shape)
        self.strides = attributes.integers(_NAME, "strides", strides, minimum=1) or (1,) * rank
        self.pads = attributes.integers(_NAME, "pads", pads, minimum=0) or (0,) * 2 * rank
        if len(self.strides) != rank or len(self.pads) != 2 * rank:
            raise OperatorError(
                f"{_NAME}: kernel_shape is {list(self.kernel_shape)}, strides {list(self.strides)} and pads "
                f"{list(self.pads)}; accepted are one, one and two entries a spatial axis."
            )

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the output.

        Raises:
            OperatorError: Shapes or dtypes do not fit, or a place lies outside of the output.
        """
        x, places, inner, shape = self._read(inputs)
        y = np.zeros(int(np.prod(inner)), x.dtype)
        y[places.reshape(-1)] = x.reshape(-1)
        if shape == inner:
            return (y.reshape(inner),)
        result = np.zeros(shape, x.dtype)
        result[tuple(slice(n) for n in inner)] = y.reshape(inner)
        return (result,)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: what lies where each element was put."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, places, inner, _ = self._read(fwd_inputs)
        gradient = np.asarray(grads[0])[tuple(slice(n) for n in inner)].reshape(-1)
        flat, number = places.reshape(-1), np.arange(places.size)
        last = np.zeros(gradient.size, np.int64)
        last[flat] = number
        by_x = np.where(last[flat] == number, gradient[flat], gradient.dtype.type(0))
        return returned([by_x.reshape(x.shape), None, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, tuple[int, ...], tuple[int, ...]]:
        """Check the inputs; return X, the places, the shape in which they count, and the output's shape."""
        received = take_inputs(_NAME, inputs, ["X", "I"], ["output_shape"])
        x, places, wanted = present(received[0]), present(received[1]), received[2]
        check_dtypes(_NAME, ["X"], [x], "floats")
        rank = len(self.kernel_shape)
        if x.ndim != rank + 2 or places.shape != x.shape or places.dtype.kind not in "iu":
            raise OperatorError(
                f"{_NAME}: received X of shape {x.shape} and I of {places.dtype} and shape {places.shape}; accepted "
                f"are [N, C, o1, ...] with the {rank} spatial axes of kernel_shape, and int64 of X's shape."
            )
        axes = zip(x.shape[2:], self.strides, self.kernel_shape, self.pads[:rank], self.pads[rank:], strict=True)
        inner = (*x.shape[:2], *((o - 1) * stride + k - begin - end for o, stride, k, begin, end in axes))
        shape = inner if wanted is None else tuple(int(n) for n in wanted.reshape(-1))
        if min(inner) < 0 or len(shape) != len(inner) or any(s < n for s, n in zip(shape, inner, strict=True)):
            raise OperatorError(
                f"{_NAME}: received X of shape {x.shape} and output_shape {list(shape)}; accepted are shapes from "
                f"{list(inner)} on, which strides, kernel_shape and pads give."
            )
        count = int(np.prod(inner))
        if places.size and not 0 <= places.min() <= places.max() < count:
            raise OperatorError(
                f"{_NAME}: received places from {places.min()} to {places.max()} in I; accepted are 0 to {count - 1}, "
                f"those of an output of shape {inner}."
            )
        return x, places, inner, shape
