"""ONNX Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.library._windows import columns, image
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.windows import WindowAttributes, Windows

__all__ = ["Col2Im"]

_NAME = "Col2Im"


class Col2Im(Operator):
    """Add blocks back to the places of an image from which windows take them; overlapping blocks add up.

    Inputs: input ``[N, C * block elements, L]``, a float or an integer, whose L blocks are in row-major order;
    image_shape and block_shape, int64, one entry a spatial axis. Output ``[N, C, *image_shape]``. What no block covers
    is 0; what lies in the padding is dropped. 16-bit floats are accumulated in float32.

    Source: ONNX Col2Im, version 18.
    """

    def __init__(
        self,
        *,
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
    ) -> None:
        """Set the attributes.

        Args:
            strides: Distance between blocks, by default 1 along every axis.
            pads: Padding before every axis, then after every axis; by default none.
            dilations: Distance between the elements of a block, by default 1 along every axis.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.windows = WindowAttributes(
            _NAME, kernel_shape=None, strides=strides, pads=pads, dilations=dilations, auto_pad="NOTSET"
        )

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the image.

        Raises:
            OperatorError: The number of blocks or of their elements is not that of the shapes.
        """
        x, windows = self._read(inputs)
        batch, rows, blocks = x.shape
        cols = x.astype(compute_dtype(x.dtype), copy=False).swapaxes(0, 1).reshape(rows, batch * blocks)
        result = image(cols, windows, batch, rows // int(np.prod(windows.kernel)))
        return (np.ascontiguousarray(result).astype(x.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input: every block takes what lies where it was added."""
        x, windows = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        cols = columns(np.asarray(grads[0]), windows, x.dtype)
        by_x = cols.reshape(x.shape[1], x.shape[0], x.shape[2]).swapaxes(0, 1)
        return returned([np.ascontiguousarray(by_x), None, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Windows]:
        received = [present(x) for x in take_inputs(_NAME, inputs, ["input", "image_shape", "block_shape"])]
        x, (size, kernel) = received[0], (tuple(int(n) for n in s.reshape(-1)) for s in received[1:])
        check_dtypes(_NAME, ["input"], [x], "numbers")
        if len(size) != len(kernel) or not size or any(n < 1 for n in (*size, *kernel)):
            raise OperatorError(
                f"{_NAME}: received image_shape {list(size)} and block_shape {list(kernel)}; accepted are sizes from 1 "
                f"on, one a spatial axis, in both."
            )
        windows = self.windows.plan(size, kernel)
        blocks, elements = int(np.prod(windows.output)), int(np.prod(kernel))
        if x.ndim != 3 or x.shape[1] % elements or x.shape[2] != blocks:
            raise OperatorError(
                f"{_NAME}: received an input of shape {x.shape}; accepted is [N, C * {elements}, {blocks}] for the "
                f"image {size} and blocks of {kernel}."
            )
        return x, windows
