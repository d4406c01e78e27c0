"""ONNX Conv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.library._windows import columns, image
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.windows import WindowAttributes, Windows

__all__ = ["Conv"]

_CHUNK_BYTES = 2 << 20  # Columns of a few images at a time stay in the cache; those of a batch would not.


class Conv(Operator):
    r"""Convolution (cross-correlation) over one, two or three spatial axes, in groups.

    .. math::
        Y_{n,m,p} = B_m + \sum_{c,k} W_{m,c,k}\, X_{n,\,c,\,p \cdot \text{strides} + k \cdot \text{dilations} -
        \text{pads}}

    with zeros outside of X. Inputs X ``[N, C, D1, ...]``, W ``[M, C / group, k1, ...]``, optionally B ``[M]``; output
    ``[N, M, o1, ...]``. All are float16, bfloat16, float32 or float64, and of one dtype; 16-bit floats are accumulated
    in float32. Implemented as image-to-column and matrix product.

    Source: ONNX Conv, version 22.
    """

    def __init__(
        self,
        *,
        kernel_shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        group: int = 1,
        auto_pad: str = "NOTSET",
    ) -> None:
        """Set the attributes.

        Args:
            kernel_shape: Spatial shape of W; by default it is read from W.
            strides: Distance between windows, by default 1 along every axis.
            pads: Zeros before every axis, then after every axis; by default none.
            dilations: Distance between the elements of a window, by default 1 along every axis.
            group: Number of groups into which channels and feature maps are divided.
            auto_pad: ``"NOTSET"`` (use ``pads``), ``"SAME_UPPER"``, ``"SAME_LOWER"`` or ``"VALID"``.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.windows = WindowAttributes(
            "Conv", kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad
        )
        self.group = attributes.integer("Conv", "group", group, minimum=1)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: The shapes of X, W and B do not fit to one another or to the attributes.
        """
        x, weights, bias, windows = self._read(inputs)
        wide = compute_dtype(x.dtype)
        maps = weights.shape[0]
        matrix = weights.astype(wide, copy=False).reshape(self.group, maps // self.group, -1)
        y = np.empty((x.shape[0], maps, *windows.output), x.dtype)
        for part in self._chunks(x, windows):
            cols = columns(x[part], windows, wide).reshape(self.group, matrix.shape[2], -1)
            product = np.matmul(matrix, cols).reshape(maps, -1, *windows.output)
            if bias is not None:
                product += bias.astype(wide, copy=False).reshape(-1, *(1,) * (x.ndim - 1))
            y[part] = product.swapaxes(0, 1)
        return (y,)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X, W and B."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, weights, _, windows = self._read(fwd_inputs)
        wide = compute_dtype(x.dtype)
        gradient = np.asarray(grads[0])
        maps = weights.shape[0]
        matrix = weights.astype(wide, copy=False).reshape(self.group, maps // self.group, -1)
        by_matrix = np.zeros(matrix.shape, wide)
        by_x = np.empty(x.shape, x.dtype)
        for part in self._chunks(x, windows):
            cols = columns(x[part], windows, wide).reshape(self.group, matrix.shape[2], -1)
            g = gradient[part].swapaxes(0, 1).astype(wide, copy=False).reshape(self.group, maps // self.group, -1)
            by_matrix += np.matmul(g, cols.swapaxes(1, 2))
            by_cols = np.matmul(matrix.swapaxes(1, 2), g).reshape(x.shape[1] * int(np.prod(windows.kernel)), -1)
            by_x[part] = image(by_cols, windows, x[part].shape[0], x.shape[1])
        by_bias = gradient.sum(axis=(0, *range(2, x.ndim)), dtype=wide)
        return returned([by_x, by_matrix.reshape(weights.shape), by_bias], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, OptionalArray, Windows]:
        """Check the inputs; return them and where the windows lie."""
        received = take_inputs("Conv", inputs, ["X", "W"], ["B"])
        check_dtypes("Conv", ["X", "W", "B"], received, "floats")
        x, weights, bias = present(received[0]), present(received[1]), received[2]
        if x.ndim < 3 or weights.ndim != x.ndim:
            raise OperatorError(
                f"Conv: received X of shape {x.shape} and W of shape {weights.shape}; accepted are X [N, C, D1, ...] "
                f"and W [M, C / group, k1, ...] of one rank from 3 on."
            )
        maps = weights.shape[0]
        if x.shape[1] != weights.shape[1] * self.group or maps % self.group:
            raise OperatorError(
                f"Conv: received X of shape {x.shape} and W of shape {weights.shape} with group {self.group}; accepted "
                f"is X.shape[1] equal to W.shape[1] * group, and W.shape[0] a multiple of group."
            )
        kernel = weights.shape[2:]
        if self.windows.kernel_shape not in (None, kernel) or 0 in kernel:
            raise OperatorError(
                f"Conv: kernel_shape is {self.windows.kernel_shape} and W has the shape {weights.shape}; accepted is "
                f"the same spatial shape, without zeros."
            )
        if bias is not None and bias.shape != (maps,):
            raise OperatorError(f"Conv: received B of shape {bias.shape}; accepted is ({maps},), one a feature map.")
        return x, weights, bias, self.windows.plan(x.shape[2:], kernel)

    @staticmethod
    def _chunks(x: Array, windows: Windows) -> Iterator[slice]:
        """Divide the batch into parts whose columns fit into the cache."""
        elements = x.shape[1] * int(np.prod(windows.kernel)) * int(np.prod(windows.output))
        images = max(1, _CHUNK_BYTES // max(1, elements * compute_dtype(x.dtype).itemsize))
        for start in range(0, x.shape[0], images):
            yield slice(start, start + images)
