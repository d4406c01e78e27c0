"""Values between the pixels of an image: weighted sums of the pixels around a position, and their derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from deep500.operators.operator import Array

__all__ = ["Corner", "Taps", "corners", "cubic_kernel", "linear_taps", "sample", "sample_backward", "without_outside"]


class Taps(NamedTuple):
    """The pixels along one axis that count for each position, T of them.

    Attributes:
        pixel: Which pixels, whole numbers ``[T, ...]``; as floats they may lie outside of the axis.
        weight: Their weights ``[T, ...]``.
        slope: The derivatives of the weights by the position ``[T, ...]``.
    """

    pixel: Array
    weight: Array
    slope: Array


class Corner(NamedTuple):
    """One pixel for each position: a choice of one tap along every axis.

    Attributes:
        pixel: Its number in the flattened image.
        weight: Its weight, the product of those along the axes.
        slopes: The derivatives of the weight by the position, one an axis.
    """

    pixel: Array
    weight: Array
    slopes: tuple[Array, ...]


def cubic_kernel(t: Array, a: float) -> tuple[Array, Array]:
    r"""Return Keys' cubic convolution kernel at distances, and its derivative.

    .. math::
        k(t) = \begin{cases}(a + 2)|t|^3 - (a + 3)|t|^2 + 1 & |t| \le 1 \\
        a|t|^3 - 5a|t|^2 + 8a|t| - 4a & 1 < |t| < 2 \\ 0 & \text{else}\end{cases}

    Source: R. Keys, https://ieeexplore.ieee.org/document/1163711.
    """
    d = np.abs(t)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    near_slope = (3 * (a + 2) * d - 2 * (a + 3)) * d
    far_slope = (3 * a * d - 10 * a) * d + 8 * a
    value = np.where(d <= 1, near, np.where(d < 2, far, 0))
    return value, np.sign(t) * np.where(d <= 1, near_slope, np.where(d < 2, far_slope, 0))


def linear_taps(position: Array) -> Taps:
    """Return the pixels on either side of positions, with weights that fall linearly with the distance."""
    low = np.floor(position)
    share, one = position - low, np.ones_like(position)
    return Taps(np.stack([low, low + 1]), np.stack([1 - share, share]), np.stack([-one, one]))


def without_outside(taps: Taps, size: int) -> Taps:
    """Return taps of which those outside of an axis count nothing, as if zeros lay there."""
    inside = (taps.pixel >= 0) & (taps.pixel < size)
    index = np.where(inside, taps.pixel, 0).astype(np.int64)
    return Taps(index, np.where(inside, taps.weight, 0), np.where(inside, taps.slope, 0))


def corners(taps: Sequence[Taps], size: Sequence[int]) -> Iterator[Corner]:
    """Iterate over the pixels around every position.

    Args:
        taps: Those along every axis, of one shape but for the number of taps; pixels are integers within the axis.
        size: The spatial shape of the image.
    """
    for choice in itertools.product(*(range(len(axis.weight)) for axis in taps)):
        index = np.zeros(taps[0].pixel.shape[1:], np.int64)
        weight = np.ones(taps[0].weight.shape[1:], taps[0].weight.dtype)
        slopes: list[Array] = []
        for tap, axis, n in zip(choice, taps, size, strict=True):
            index = index * n + axis.pixel[tap]
            slopes = [slope * axis.weight[tap] for slope in slopes]
            slopes.append(weight * axis.slope[tap])
            weight = weight * axis.weight[tap]
        yield Corner(index, weight, tuple(slopes))


def sample(x: Array, taps: Sequence[Taps]) -> Array:
    """Return the values of images at positions.

    Args:
        x: Images ``[B, C, D1, ...]``, in the dtype to compute in.
        taps: The pixels around the positions of each image, one :class:`Taps` of ``[T, B, P]`` an axis.

    Returns:
        ``[B, C, P]``. A pixel whose weight is 0 does not count, even when it is infinite.
    """
    flat = x.reshape(*x.shape[:2], -1)
    total = np.zeros((*x.shape[:2], taps[0].pixel.shape[-1]), x.dtype)
    for index, weight, _ in corners(taps, x.shape[2:]):
        weight = weight[:, None].astype(x.dtype, copy=False)
        total += np.where(weight == 0, 0, weight * np.take_along_axis(flat, index[:, None], axis=2))
    return total


def sample_backward(gradient: Array, x: Array, taps: Sequence[Taps]) -> tuple[Array, list[Array]]:
    """Return the gradients of :func:`sample` by the images, and by the positions along every axis.

    Args:
        gradient: That by the values, ``[B, C, P]``.
        x: The images.
        taps: The pixels around the positions.

    Returns:
        ``[B, C, D1, ...]``, and for every axis ``[B, P]``.
    """
    flat = x.reshape(*x.shape[:2], -1)
    by_x = np.zeros(x.size, x.dtype)
    by_position = [np.zeros(taps[0].pixel.shape[1:], x.dtype) for _ in taps]
    first = (np.arange(x.shape[0] * x.shape[1]) * flat.shape[2]).reshape(*x.shape[:2], 1)
    for index, weight, slopes in corners(taps, x.shape[2:]):
        share = gradient * weight[:, None].astype(x.dtype, copy=False)
        np.add.at(by_x, (first + index[:, None]).reshape(-1), share.reshape(-1))
        along = (gradient * np.take_along_axis(flat, index[:, None], axis=2)).sum(axis=1)
        for total, slope in zip(by_position, slopes, strict=True):
            total += np.where(slope == 0, 0, slope * along)
    return by_x.reshape(x.shape), by_position
