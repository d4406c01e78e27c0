"""ONNX ConvTranspose."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.library._windows import columns, image
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.windows import WindowAttributes, Windows

__all__ = ["ConvTranspose"]

_NAME = "ConvTranspose"


class _Read(NamedTuple):
    """The inputs, checked, and where the windows lie over the output."""

    x: Array
    weights: Array
    bias: OptionalArray
    windows: Windows
    shift: tuple[int, ...]  # output elements before the first window, where the padding is negative


class ConvTranspose(Operator):
    r"""Transposed convolution over the spatial axes, in groups: every element of X adds a window to Y.

    .. math::
        Y_{n,\,m,\,p \cdot \text{strides} + k \cdot \text{dilations} - \text{pads}} \mathrel{+}=
        \sum_c W_{c,m,k}\, X_{n,c,p}

    and B is added to every feature map. Inputs X ``[N, C, D1, ...]``, W ``[C, M / group, k1, ...]``, optionally B
    ``[M]``; output ``[N, M, o1, ...]`` with ``o = strides (D - 1) + output_padding + (k - 1) dilations + 1 - pads``.
    All are float16, bfloat16, float32 or float64, and of one dtype; 16-bit floats are accumulated in float32.

    ``output_shape``, or SAME (which makes it ``D strides``), determines the padding instead; what no window reaches is
    B. Where that takes a negative padding, SAME puts zeros on both sides as the specification's formula says, and
    without ``auto_pad`` they come after, as in ONNX' reference and in ONNX Runtime.

    Source: ONNX ConvTranspose, version 22.
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
        output_padding: Sequence[int] | None = None,
        output_shape: Sequence[int] | None = None,
    ) -> None:
        """Set the attributes.

        Args:
            kernel_shape: Spatial shape of W; by default it is read from W.
            strides: Distance between windows in the output, by default 1 along every axis.
            pads: What is cut off before every axis, then after every axis; by default nothing.
            dilations: Distance between the elements of a window, by default 1 along every axis.
            group: Number of groups into which channels and feature maps are divided.
            auto_pad: ``"NOTSET"`` (use ``pads``), ``"SAME_UPPER"``, ``"SAME_LOWER"`` or ``"VALID"``.
            output_padding: Elements added at the end of every axis, by default none.
            output_shape: Spatial shape of the output, from which the padding follows.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.windows = WindowAttributes(
            _NAME, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad
        )
        self.group = attributes.integer(_NAME, "group", group, minimum=1)
        self.output_padding = attributes.integers(_NAME, "output_padding", output_padding, minimum=0)
        self.output_shape = attributes.integers(_NAME, "output_shape", output_shape, minimum=0)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: The shapes of X, W and B do not fit to one another or to the attributes.
        """
        x, weights, bias, windows, shift = self._read(inputs)
        wide = compute_dtype(x.dtype)
        maps = weights.shape[1] * self.group
        pixels = self._pixels(x, wide)
        cols = np.matmul(self._matrix(weights, wide).swapaxes(1, 2), pixels)
        cols = cols.reshape(maps * int(np.prod(windows.kernel)), -1)
        reached = image(cols, windows, x.shape[0], maps)
        y = np.zeros((*reached.shape[:2], *(n + s for n, s in zip(windows.size, shift, strict=True))), wide)
        y[_after(shift)] = reached
        if bias is not None:
            y += bias.astype(wide, copy=False).reshape(-1, *(1,) * (x.ndim - 2))
        return (y.astype(x.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X (a convolution of that by Y), W and B."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, weights, _, windows, shift = self._read(fwd_inputs)
        wide = compute_dtype(x.dtype)
        gradient = np.asarray(grads[0])
        by_bias = gradient.sum(axis=(0, *range(2, x.ndim)), dtype=wide)
        reached = gradient[_after(shift)]
        by_cols = columns(reached, windows, wide)
        matrix = self._matrix(weights, wide)
        by_cols = by_cols.reshape(self.group, matrix.shape[2], x.shape[0] * int(np.prod(x.shape[2:])))
        by_x = np.matmul(matrix, by_cols).reshape(x.shape[1], x.shape[0], *x.shape[2:]).swapaxes(0, 1)
        by_matrix = np.matmul(self._pixels(x, wide), by_cols.swapaxes(1, 2))
        return returned([by_x, by_matrix.reshape(weights.shape), by_bias], fwd_inputs)

    def _matrix(self, weights: Array, wide: np.dtype[np.generic]) -> Array:
        """Return W as one matrix a group, ``[group, C / group, M / group * K]``."""
        channels = weights.shape[0] // self.group
        elements = weights.shape[1] * int(np.prod(weights.shape[2:]))
        return weights.astype(wide, copy=False).reshape(self.group, channels, elements)

    def _pixels(self, x: Array, wide: np.dtype[np.generic]) -> Array:
        """Return X as one matrix a group, ``[group, C / group, N * D]``."""
        pixels = x.shape[0] * int(np.prod(x.shape[2:]))
        return x.swapaxes(0, 1).astype(wide, copy=False).reshape(self.group, x.shape[1] // self.group, pixels)

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        received = take_inputs(_NAME, inputs, ["X", "W"], ["B"])
        check_dtypes(_NAME, ["X", "W", "B"], received, "floats")
        x, weights, bias = present(received[0]), present(received[1]), received[2]
        if x.ndim < 3 or weights.ndim != x.ndim or 0 in x.shape[2:]:
            raise OperatorError(
                f"{_NAME}: received X of shape {x.shape} and W of shape {weights.shape}; accepted are X [N, C, D1, "
                f"...] and W [C, M / group, k1, ...] of one rank from 3 on, without empty spatial axes."
            )
        if x.shape[1] != weights.shape[0] or x.shape[1] % self.group:
            raise OperatorError(
                f"{_NAME}: received X of shape {x.shape} and W of shape {weights.shape} with group {self.group}; "
                f"accepted is X.shape[1] equal to W.shape[0], and a multiple of group."
            )
        kernel = weights.shape[2:]
        if self.windows.kernel_shape not in (None, kernel) or 0 in kernel:
            raise OperatorError(
                f"{_NAME}: kernel_shape is {self.windows.kernel_shape} and W has the shape {weights.shape}; accepted "
                f"is the same spatial shape, without zeros."
            )
        maps = weights.shape[1] * self.group
        if bias is not None and bias.shape != (maps,):
            raise OperatorError(f"{_NAME}: received B of shape {bias.shape}; accepted is ({maps},), one a feature map.")
        return _Read(x, weights, bias, *self._plan(x.shape[2:], kernel))

    def _plan(self, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Windows, tuple[int, ...]]:
        """Lay the windows, one an element of X, over the output."""
        rank = len(spatial)
        given = {
            "strides": (self.windows.strides, (1,) * rank),
            "dilations": (self.windows.dilations, (1,) * rank),
            "output_padding": (self.output_padding, (0,) * rank),
            "output_shape": (self.output_shape, (-1,) * rank),
            "pads": (self.windows.pads, (0,) * 2 * rank),
        }
        values = {}
        for name, (value, default) in given.items():
            values[name] = default if value is None else value
            if len(values[name]) != len(default):
                raise OperatorError(
                    f"{_NAME}: {name} is {list(values[name])} for an input of {rank} spatial axes {spatial}; accepted "
                    f"are {len(default)} entries."
                )
        strides, dilations, extra = values["strides"], values["dilations"], values["output_padding"]
        axes = []
        for i in range(rank):
            full = strides[i] * (spatial[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1
            pads = values["pads"][i], values["pads"][rank + i]
            axes.append(self._axis(full, spatial[i] * strides[i], values["output_shape"][i], pads))
        begin, size = tuple(axis[0] for axis in axes), tuple(axis[1] for axis in axes)
        if any(n < 0 for n in size):
            raise OperatorError(
                f"{_NAME}: the output's spatial shape would be {size} for an input of {spatial}, the kernel {kernel} "
                f"and pads {list(values['pads'])}; accepted are pads that leave something."
            )
        shift = tuple(min(n, max(0, -b)) for b, n in zip(begin, size, strict=True))
        inner = tuple(n - s for n, s in zip(size, shift, strict=True))
        windows = Windows(inner, kernel, strides, dilations, tuple(max(0, b) for b in begin), (0,) * rank, spatial)
        return windows, shift

    def _axis(self, full: int, same: int, wanted: int, pads: tuple[int, int]) -> tuple[int, int]:
        """Return the padding before one axis, and the size of the output along it.

        Args:
            full: Elements from the first to the last one of any window, and the output padding.
            same: Size of the output that SAME asks for.
            wanted: The entry of ``output_shape``, -1 where that is absent.
            pads: The entries of ``pads``.
        """
        is_same = self.windows.auto_pad.startswith("SAME")
        if wanted < 0 and not is_same:
            begin, end = (0, 0) if self.windows.auto_pad == "VALID" else pads
            return begin, full - begin - end
        size = wanted if wanted >= 0 else same
        total = full - size if is_same else max(0, full - size)
        return total // 2 if self.windows.auto_pad == "SAME_UPPER" else total - total // 2, size


def _after(shift: tuple[int, ...]) -> tuple[EllipsisType | slice, ...]:
    """Return the slices of the spatial axes from the first window on."""
    return (..., *(slice(s, None) for s in shift))
