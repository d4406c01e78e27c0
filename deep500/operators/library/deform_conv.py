"""ONNX DeformConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._sampling import Taps, linear_taps, sample, sample_backward, without_outside
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.windows import WindowAttributes, Windows

__all__ = ["DeformConv"]

_NAME = "DeformConv"


class _Read(NamedTuple):
    """The inputs, checked, in the dtype to compute in."""

    x: Array  # [N * offset_group, C / offset_group, D1, ...]
    matrix: Array  # [group, M / group, C / group * K]
    bias: OptionalArray
    mask: OptionalArray  # [N * offset_group, 1, K * P]
    taps: list[Taps]  # one an axis, [2, N * offset_group, K * P]
    windows: Windows


class DeformConv(Operator):
    r"""Convolution whose windows' elements are each moved by an offset, and weighted by a mask.

    .. math::
        Y_{n,m,p} = B_m + \sum_{c,k} W_{m,c,k}\, \text{mask}_{n,k,p}\,
        X_{n,\,c,\,p \cdot \text{strides} + k \cdot \text{dilations} - \text{pads} + \text{offset}_{n,k,p}}

    with linear interpolation between pixels, and zeros outside of X. Inputs X ``[N, C, D1, ...]``,
    W ``[M, C / group, k1, ...]``, offset ``[N, offset_group * K * r, o1, ...]`` for K elements of a window and r
    spatial axes, optionally B ``[M]`` and mask ``[N, offset_group * K, o1, ...]``; output ``[N, M, o1, ...]``. All are
    float16, bfloat16, float32 or float64, and of one dtype; 16-bit floats are computed in float32.

    Where a moved element lies on a pixel, the derivative by its offset is that towards larger offsets.

    Source: ONNX DeformConv, version 22; https://arxiv.org/abs/1811.11168.
    """

    def __init__(
        self,
        *,
        kernel_shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        group: int = 1,
        offset_group: int = 1,
    ) -> None:
        """Set the attributes.

        Args:
            kernel_shape: Spatial shape of W; by default it is read from W.
            strides: Distance between windows, by default 1 along every axis.
            pads: Zeros before every axis, then after every axis; by default none.
            dilations: Distance between the elements of a window, by default 1 along every axis.
            group: Number of groups into which channels and feature maps are divided.
            offset_group: Number of groups of channels that have offsets of their own.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.windows = WindowAttributes(
            _NAME, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, auto_pad="NOTSET"
        )
        self.group = attributes.integer(_NAME, "group", group, minimum=1)
        self.offset_group = attributes.integer(_NAME, "offset_group", offset_group, minimum=1)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: The shapes of the inputs do not fit to one another or to the attributes.
        """
        read = self._read(inputs)
        x = np.asarray(inputs[0])
        values = sample(read.x, read.taps)
        cols = values if read.mask is None else values * read.mask
        maps = read.matrix.shape[0] * read.matrix.shape[1]
        y = np.matmul(read.matrix, self._grouped(cols, read, x.shape[0])).reshape(
            x.shape[0], maps, *read.windows.output
        )
        if read.bias is not None:
            y += read.bias.reshape(-1, *(1,) * (x.ndim - 2))
        return (y.astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X, W, offset, B and mask."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        read = self._read(fwd_inputs)
        x, weights, offset = (np.asarray(t) for t in fwd_inputs[:3])
        wide, batch = read.x.dtype, x.shape[0]
        gradient = np.asarray(grads[0]).astype(wide, copy=False)
        by_bias = gradient.sum(axis=(0, *range(2, x.ndim)))
        gradient = gradient.reshape(batch, self.group, read.matrix.shape[1], -1)
        values = sample(read.x, read.taps)
        cols = self._grouped(values if read.mask is None else values * read.mask, read, batch)
        by_matrix = np.matmul(gradient, cols.swapaxes(2, 3)).sum(axis=0)
        by_cols = np.matmul(read.matrix.swapaxes(1, 2), gradient).reshape(values.shape)
        by_mask: OptionalArray = None
        if read.mask is not None:
            by_mask = (by_cols * values).sum(axis=1).reshape(np.asarray(fwd_inputs[4]).shape)
            by_cols = by_cols * read.mask
        by_x, by_position = sample_backward(by_cols, read.x, read.taps)
        elements = int(np.prod(read.windows.kernel))
        by_offset = np.stack([p.reshape(batch * self.offset_group, elements, -1) for p in by_position], axis=2)
        return returned(
            [
                by_x.reshape(x.shape),
                by_matrix.reshape(weights.shape),
                by_offset.reshape(offset.shape),
                by_bias,
                by_mask,
            ],
            fwd_inputs,
        )

    def _grouped(self, cols: Array, read: _Read, batch: int) -> Array:
        """Return samples as one matrix an image and group, ``[N, group, C / group * K, P]``."""
        return cols.reshape(batch, self.group, read.matrix.shape[2], int(np.prod(read.windows.output)))

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        names = ["X", "W", "offset", "B", "mask"]
        received = take_inputs(_NAME, inputs, names[:3], names[3:])
        check_dtypes(_NAME, names, received, "floats")
        x, weights, offset = (present(t) for t in received[:3])
        bias, mask = received[3:]
        groups, maps = self.offset_group, weights.shape[0] if weights.ndim else 0
        if (
            x.ndim < 3
            or weights.ndim != x.ndim
            or 0 in (*x.shape[2:], *weights.shape[2:])
            or x.shape[1] != weights.shape[1] * self.group
            or maps % self.group
            or x.shape[1] % groups
        ):
            raise OperatorError(
                f"{_NAME}: received X of shape {x.shape} and W of shape {weights.shape} with group {self.group} and "
                f"offset_group {groups}; accepted are X [N, C, D1, ...] and W [M, C / group, k1, ...] of one rank from "
                f"3 on without empty spatial axes, C and M multiples of the groups."
            )
        kernel = weights.shape[2:]
        if self.windows.kernel_shape not in (None, kernel):
            raise OperatorError(
                f"{_NAME}: kernel_shape is {self.windows.kernel_shape} and W has the shape {weights.shape}; accepted "
                f"is the same spatial shape."
            )
        windows = self.windows.plan(x.shape[2:], kernel)
        rank, elements = len(kernel), int(np.prod(kernel))
        expected = {
            "offset": (offset, (x.shape[0], groups * elements * rank, *windows.output)),
            "B": (bias, (maps,)),
            "mask": (mask, (x.shape[0], groups * elements, *windows.output)),
        }
        for name, (tensor, shape) in expected.items():
            if tensor is not None and tensor.shape != shape:
                raise OperatorError(f"{_NAME}: received {name} of shape {tensor.shape}; accepted is {shape}.")
        wide = compute_dtype(x.dtype)
        batch = x.shape[0] * groups
        matrix = weights.astype(wide, copy=False).reshape(self.group, maps // self.group, -1)
        images = x.astype(wide, copy=False).reshape(batch, x.shape[1] // groups, *x.shape[2:])
        return _Read(
            images,
            matrix,
            None if bias is None else bias.astype(wide, copy=False),
            None if mask is None else mask.astype(wide, copy=False).reshape(batch, 1, -1),
            _taps(offset.astype(wide, copy=False).reshape(batch, elements, rank, -1), windows),
            windows,
        )


def _taps(offset: Array, windows: Windows) -> list[Taps]:
    """Return the pixels around the windows' moved elements; the offset is ``[N * offset_group, K, r, P]``."""
    kernel = np.indices(windows.kernel).reshape(len(windows.kernel), -1, 1)
    place = np.indices(windows.output).reshape(len(windows.kernel), 1, -1)
    taps = []
    for axis, size in enumerate(windows.size):
        at = place[axis] * windows.strides[axis] + kernel[axis] * windows.dilations[axis] - windows.begin[axis]
        position = (offset[:, :, axis] + at.astype(offset.dtype)).reshape(offset.shape[0], -1)
        taps.append(without_outside(linear_taps(position), size))
    return taps
