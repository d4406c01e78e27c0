"""Values between the elements along an axis, and what an axis of another length is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from deep500.operators.library._sampling import cubic_kernel
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Axis", "Resampling", "resampled", "resampled_backward", "source_positions", "taps_of"]


#: How the mode "nearest" rounds.
_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda position: np.ceil(position - 0.5),
    "round_prefer_ceil": lambda position: np.floor(position + 0.5),
}


class Resampling(NamedTuple):
    """The elements along an axis of which each new one is the weighted sum, T of them: both ``[new, T]``."""

    element: Array
    weight: Array


class Axis(NamedTuple):
    """What becomes of one axis.

    Attributes:
        number: Which axis, counted from the front.
        size: Its number of elements before.
        taps: Of what each new element is made.
        outside: Which new elements lie outside of the old ones; ``None`` for none of them.
    """

    number: int
    size: int
    taps: Resampling
    outside: OptionalArray


def source_positions(mode: str, old: int, new: int, scale: float, region: tuple[float, float]) -> Array:
    """Return the positions along an axis that the elements of a resized one stand for.

    Args:
        mode: ONNX Resize' ``coordinate_transformation_mode``.
        old: Number of elements before.
        new: Number of elements after.
        scale: How many times as long the axis becomes; ``old * scale`` need not be a whole number.
        region: Start and end of what is resized, from 0 to 1 over the axis, for ``"tf_crop_and_resize"``.
    """
    x, length = np.arange(new, dtype=np.float64), old * scale
    start, end = region
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners":
        return x * 0 if length == 1 else x * (old - 1) / (length - 1)
    if mode == "tf_crop_and_resize":
        if length == 1:
            return x * 0 + 0.5 * (start + end) * (old - 1)
        return start * (old - 1) + x * (end - start) * (old - 1) / (length - 1)
    if mode == "pytorch_half_pixel" and length <= 1:
        return x * 0
    shift = old / 2 * (1 - new / length) if mode == "half_pixel_symmetric" else 0.0
    return np.asarray(shift + (x + 0.5) / scale - 0.5)


def taps_of(
    mode: str, position: Array, size: int, kernel_scale: float, cubic: float, *, exclude_outside: bool
) -> Resampling:
    """Return the elements around positions, and their weights.

    Args:
        mode: ``"linear"``, ``"cubic"``, or how to round to the nearest element.
        position: Where along the axis.
        size: Number of elements of the axis; those outside are the one at the edge.
        kernel_scale: At most 1: by how much narrower distances are for the kernel, which then covers more elements.
        cubic: The cubic kernel's coefficient.
        exclude_outside: Give elements outside no weight.
    """
    last = max(0, size - 1)
    if mode not in ("linear", "cubic"):
        rounded = _ROUNDINGS[mode](position)
        index = np.clip(rounded, 0, last).astype(np.int64)[:, None]
        return Resampling(index, np.ones(index.shape))
    reach = int(np.ceil((1 if mode == "linear" else 2) / kernel_scale))
    # The window of a position on an element lies to its left; that element is its last one with a weight.
    index = np.ceil(position)[:, None] - 1 + np.arange(1 - reach, 1 + reach)
    distance = (index - position[:, None]) * kernel_scale
    weight = np.clip(1 - np.abs(distance), 0, 1) if mode == "linear" else cubic_kernel(distance, cubic)[0]
    if exclude_outside:
        weight = np.where((index < 0) | (index > last), 0, weight)
    if exclude_outside or kernel_scale < 1:
        total = weight.sum(axis=1, keepdims=True)
        weight = weight / np.where(total == 0, 1, total)
    return Resampling(np.clip(index, 0, last).astype(np.int64), weight)


def resampled(x: Array, axis: Axis) -> Array:
    """Return a tensor with one axis resized. An element without weight does not count, even when it is infinite."""
    shape = (-1, *(1,) * (x.ndim - 1 - axis.number))
    total = np.zeros((*x.shape[: axis.number], len(axis.taps.element), *x.shape[axis.number + 1 :]), x.dtype)
    for index, weight in zip(axis.taps.element.T, axis.taps.weight.T.astype(x.dtype), strict=True):
        weight = weight.reshape(shape)
        total += np.where(weight == 0, 0, weight * np.take(x, index, axis=axis.number))
    return total


def resampled_backward(gradient: Array, axis: Axis) -> Array:
    """Return the gradient by a tensor from that by the tensor with one axis resized."""
    moved = np.moveaxis(gradient, axis.number, 0)
    by_x = np.zeros((axis.size, *moved.shape[1:]), gradient.dtype)
    for index, weight in zip(axis.taps.element.T, axis.taps.weight.T.astype(gradient.dtype), strict=True):
        if not index.size:
            continue
        # Sums over runs of one index are many times faster than np.add.at over the axis.
        order = np.argsort(index, kind="stable")
        share = moved[order] * weight[order].reshape(-1, *(1,) * (moved.ndim - 1))
        elements, first = np.unique(index[order], return_index=True)
        by_x[elements] += np.add.reduceat(share, first, axis=0)
    return np.moveaxis(by_x, 0, axis.number)
