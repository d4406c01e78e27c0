"""ONNX GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._sampling import (
    Taps,
    cubic_kernel,
    linear_taps,
    sample,
    sample_backward,
    without_outside,
)
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["GridSample"]

_NAME = "GridSample"
_CUBIC = -0.75  # the specification has no attribute for it; its reference and PyTorch take this


class GridSample(Operator):
    r"""Values of an image at the positions that a grid holds.

    Inputs X ``[N, C, D1, ..., Dr]``, a float, an integer or bool; grid ``[N, o1, ..., or, r]``, a float, whose last
    axis holds a position, the coordinate along the last axis of X first, from -1 to 1 over the image. Output
    ``[N, C, o1, ..., or]`` of X's dtype; what is computed for integers is rounded towards zero.

    A grid's ``n`` is the pixel :math:`\frac{n + 1}{2} (D - 1)` with ``align_corners``, else
    :math:`\frac{(n + 1) D - 1}{2}`. Values between pixels are interpolated; a position that lies outside of the image
    is first moved to the border or reflected by it, where ``padding_mode`` says so, and so are the pixels around it.

    The gradient by the grid is that of the interpolation: 0 for the mode ``"nearest"`` and where a position was moved
    to the border; on a pixel, that towards larger positions.

    Source: ONNX GridSample, version 22; https://arxiv.org/abs/1506.02025.
    """

    def __init__(self, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0) -> None:
        """Set the attributes.

        Args:
            mode: ``"linear"``, ``"nearest"`` (half to even) or ``"cubic"``.
            padding_mode: What lies outside: ``"zeros"``, the ``"border"``'s values, or a ``"reflection"``.
            align_corners: 1 when -1 and 1 are the centres of the outermost pixels, 0 when they are their edges.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.mode = attributes.choice(_NAME, "mode", mode, ("linear", "nearest", "cubic"))
        self.padding_mode = attributes.choice(_NAME, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
        self.align_corners = attributes.flag(_NAME, "align_corners", align_corners)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the values.

        Raises:
            OperatorError: The shapes do not fit to one another, or a dtype is not accepted.
        """
        x, grid = _read(inputs)
        wide = _compute_dtype(x, grid)
        taps = [tap for tap, _ in self._taps(x, grid.astype(wide, copy=False))]
        y = sample(x.astype(wide, copy=False), taps)
        return (y.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X and by the grid."""
        x, grid = _read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        wide = _compute_dtype(x, grid)
        found = self._taps(x, grid.astype(wide, copy=False))
        gradient = np.asarray(grads[0]).astype(wide, copy=False).reshape(*x.shape[:2], -1)
        by_x, by_position = sample_backward(gradient, x.astype(wide, copy=False), [tap for tap, _ in found])
        by_axis = [by * slope for by, (_, slope) in zip(by_position, found, strict=True)]
        return returned([by_x, np.stack(by_axis[::-1], axis=-1).reshape(grid.shape)], fwd_inputs)

    def _taps(self, x: Array, grid: Array) -> list[tuple[Taps, Array]]:
        """Return for every axis the pixels around the positions, and the positions' derivatives by the grid."""
        rank = x.ndim - 2
        found = []
        for axis, size in enumerate(x.shape[2:]):
            n = grid[..., rank - 1 - axis].reshape(grid.shape[0], -1)
            position, slope = self._position(n, size)
            taps = self._around(position)
            if self.padding_mode == "zeros":
                taps = without_outside(taps, size)
            elif self.padding_mode == "border":
                taps = taps._replace(pixel=_whole(taps.pixel, size))
            else:
                taps = taps._replace(pixel=_whole(_reflected(taps.pixel, *self._borders(size))[0], size))
            found.append((taps, slope))
        return found

    def _position(self, n: Array, size: int) -> tuple[Array, Array]:
        """Return where entries of a grid lie along an axis, in pixels, and the derivatives of that."""
        if self.align_corners:
            position, factor = (n + 1) / 2 * (size - 1), (size - 1) / 2
        else:
            position, factor = ((n + 1) * size - 1) / 2, size / 2
        if self.mode == "nearest":
            position = np.rint(position)
        slope = np.full_like(position, factor)
        low, high = self._borders(size)
        outside = (position < low) | (position > high)
        if self.padding_mode == "border":
            slope = np.where(outside, 0, slope)
            position = np.where(outside, np.clip(position, 0, size - 1), position)
        elif self.padding_mode == "reflection":
            reflected, direction = _reflected(position, low, high)
            position, slope = np.where(outside, reflected, position), slope * direction
        return position, slope

    def _borders(self, size: int) -> tuple[float, float]:
        return (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)

    def _around(self, position: Array) -> Taps:
        """Return the pixels around positions, which may lie outside of the image."""
        if self.mode == "linear":
            return linear_taps(position)
        if self.mode == "nearest":
            return Taps(position[None], np.ones_like(position)[None], np.zeros_like(position)[None])
        first = np.floor(position)
        index = np.stack([first + tap for tap in (-1, 0, 1, 2)])
        return Taps(index, *cubic_kernel(position - index, _CUBIC))


def _compute_dtype(x: Array, grid: Array) -> np.dtype[Any]:
    return np.dtype(np.result_type(compute_dtype(x.dtype), compute_dtype(grid.dtype)))


def _whole(index: Array, size: int) -> Array:
    """Return indices as integers within an axis."""
    return np.asarray(np.nan_to_num(np.clip(index, 0, size - 1)).astype(np.int64))


def _reflected(position: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return positions reflected by two borders until they lie between them, and the derivatives of that."""
    span = high - low
    if span <= 0:
        return np.full_like(position, low), np.zeros_like(position)
    beyond = np.where(position < low, low - position, position - high)
    times = np.trunc(beyond / span)
    rest = beyond - times * span
    is_even = times % 2 == 0
    reflected = np.where((position < low) == is_even, low + rest, high - rest)
    inside = (position >= low) & (position <= high)
    return np.where(inside, position, reflected), np.where(inside | ~is_even, 1, -1).astype(position.dtype)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
    """Check the inputs."""
    x, grid = (present(t) for t in take_inputs(_NAME, inputs, ["X", "grid"]))
    if x.dtype != np.bool_:
        check_dtypes(_NAME, ["X"], [x], "numbers")
    check_dtypes(_NAME, ["grid"], [grid], "floats")
    rank = x.ndim - 2
    if rank < 1 or 0 in x.shape[2:] or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        raise OperatorError(
            f"{_NAME}: received X of shape {x.shape} and grid of shape {grid.shape}; accepted are [N, C, D1, ..., Dr] "
            f"without empty spatial axes and [N, o1, ..., or, r]."
        )
    return x, grid
