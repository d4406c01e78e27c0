"""Sampling images at places between their elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import Size, length, product, size, sizes, vector

__all__ = ["GRID_MODES", "grid_sample", "roi_align"]

#: Modes of GridSample, with the names that older versions have.
GRID_MODES = {"linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic", "nearest": "nearest"}

#: The coefficient of GridSample's cubic filter.
_CUBIC = -0.75


def grid_sample(x: tf.Tensor, grid: tf.Tensor, mode: str, padding: str, align_corners: bool) -> tf.Tensor:
    """Return the values of images at the places of a grid.

    Args:
        x: ``[N, C, spatial...]``.
        grid: ``[N, out..., r]``, the last spatial axis first; -1 and 1 are the edges.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        padding: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: Whether the edges are the centers of the outermost elements.

    Raises:
        OperatorError: The padding is none of these.

    Source: ONNX GridSample-22.
    """
    if padding not in ("zeros", "border", "reflection"):
        raise OperatorError(f"GridSample has the padding mode {padding!r}; accepted are zeros, border and reflection.")
    own = sizes(x)
    rank = len(own) - 2
    grid = tf.cast(grid, tf.float32) if grid.dtype.size < 4 else grid
    axes = []
    for axis in range(rank):
        extent = tf.cast(own[2 + axis], grid.dtype)
        places = grid[..., rank - 1 - axis] + 1
        places = places / 2 * (extent - 1) if align_corners else (places * extent - 1) / 2
        axes.append(_axis_taps(places, tf.cast(own[2 + axis], tf.int64), mode, padding, align_corners))
    outputs = sizes(grid)[1:-1]
    images = tf.reshape(x, vector([own[0], own[1], product(own[2:])]))
    images = tf.transpose(images, [0, 2, 1])
    wide = x if mode == "nearest" else _computing(x)
    y = _sum_of_taps(tf.cast(images, wide.dtype), axes, own[2:], mode == "nearest")
    y = tf.transpose(tf.cast(y, x.dtype), [0, 2, 1])
    return tf.reshape(y, vector([own[0], own[1], *outputs]))


@dataclass(frozen=True)
class _Tap:
    """One of the elements along one axis that samples are made of.

    Attributes:
        positions: Which one, ``[N, out...]``, within the image.
        weights: Its weight; ``None`` where there is only this one.
        inside: Whether it counts; ``None`` where all do.
    """

    positions: tf.Tensor
    weights: tf.Tensor | None
    inside: tf.Tensor | None


def _axis_taps(places: tf.Tensor, count: tf.Tensor, mode: str, padding: str, align_corners: bool) -> list[_Tap]:
    extent = tf.cast(count, places.dtype)
    if mode == "nearest":
        places = tf.round(places)
    low, high = (0.0, extent - 1) if align_corners else (-0.5, extent - 0.5)
    outside = (places < low) | (places > high)
    if padding == "border":
        places = tf.where(outside, tf.clip_by_value(places, 0, extent - 1), places)
    elif padding == "reflection":
        places = tf.where(outside, _reflected(places, low, high), places)
    # Beyond this all elements are outside; integers would overflow.
    places = tf.clip_by_value(places, -3, extent + 2)
    if mode == "nearest":
        return [_tap(tf.cast(places, tf.int64), None, count, padding, align_corners)]
    below = tf.math.floor(places)
    first = tf.cast(below, tf.int64)
    weights = _cubic_weights(places - below) if mode == "cubic" else [1 - (places - below), places - below]
    start = 1 - len(weights) // 2
    return [_tap(first + start + k, weight, count, padding, align_corners) for k, weight in enumerate(weights)]


def _tap(positions: tf.Tensor, weights: tf.Tensor | None, count: tf.Tensor, padding: str, align_corners: bool) -> _Tap:
    inside = (positions >= 0) & (positions < count) if padding == "zeros" else None
    if padding == "reflection":
        period = tf.maximum(2 * (count - 1), 1) if align_corners else 2 * count
        wrapped = tf.math.floormod(positions, period)
        positions = tf.where(wrapped < count, wrapped, period - wrapped - (0 if align_corners else 1))
    # A place that is no number has no element.
    return _Tap(tf.clip_by_value(positions, 0, count - 1), weights, inside)


def _reflected(places: tf.Tensor, low: float, high: tf.Tensor) -> tf.Tensor:
    span = high - low
    distance = tf.math.floormod(places - low, tf.where(span > 0, 2 * span, tf.ones_like(span)))
    return tf.where(span > 0, low + tf.minimum(distance, 2 * span - distance), tf.zeros_like(places))


def _cubic_weights(t: tf.Tensor) -> list[tf.Tensor]:
    def near(d: tf.Tensor) -> tf.Tensor:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: tf.Tensor) -> tf.Tensor:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _sum_of_taps(images: tf.Tensor, axes: Sequence[Sequence[_Tap]], extents: Sequence[int], nearest: bool) -> tf.Tensor:
    """Return the weighted sums ``[N, P, C]`` over all combinations of the axes' taps of ``[N, D1 D2 ..., C]``."""
    terms = []
    for taps in itertools.product(*axes):
        position, weight, inside = tf.constant(0, tf.int64), None, None
        for tap, extent in zip(taps, extents, strict=True):
            position = position * tf.cast(extent, tf.int64) + tap.positions
            if tap.weights is not None:
                weight = tap.weights if weight is None else weight * tap.weights
            if tap.inside is not None:
                inside = tap.inside if inside is None else inside & tap.inside
        flat = [tf.shape(images)[0], -1]
        value = tf.gather(images, tf.reshape(position, flat), batch_dims=1)
        if inside is not None:
            value = tf.where(tf.reshape(inside, flat)[..., None], value, tf.zeros([], value.dtype))
        if not nearest and weight is not None:
            value *= tf.cast(tf.reshape(weight, flat)[..., None], value.dtype)
        terms.append(value)
    return terms[0] if len(terms) == 1 else tf.add_n(terms)


def roi_align(
    x: tf.Tensor,
    starts: tf.Tensor,
    extents: tf.Tensor,
    images: tf.Tensor,
    shape: tuple[int, int],
    ratio: int,
    mode: str,
) -> tf.Tensor:
    """Return the averages or maxima of samples in the cells of regions.

    Args:
        x: ``[N, C, H, W]``.
        starts: ``[R, 2]``, the regions' first row and column, between elements.
        extents: ``[R, 2]``, their heights and widths.
        images: ``[R]``, which image each is of.
        shape: Number of cells in both directions.
        ratio: Number of samples of a cell in either direction; 0 for one an element.
        mode: ``"avg"`` or ``"max"``.

    Returns:
        ``[R, C, *shape]``.

    Source: ONNX RoiAlign-22.
    """
    count, channels, *plane = sizes(x)
    cells = extents / tf.constant([shape], x.dtype)
    region, cell, per_cell, places = _samples(cells, size(starts, 0), shape, ratio)
    corners = _corners(tf.gather(starts, region) + places * tf.gather(cells, region), plane)
    rows = tf.reshape(tf.transpose(x, [0, 2, 3, 1]), vector([product([count, *plane]), channels]))
    base = tf.gather(tf.cast(images, tf.int64), region) * tf.cast(product(plane), tf.int64)
    terms = [tf.gather(rows, base + position) * weight[:, None] for position, weight in corners]
    total = vector([size(starts, 0) * shape[0] * shape[1]])[0]
    if mode == "max":
        # The maximum is over the weighted elements, as in every runtime, not over their sums.
        largest = tf.math.unsorted_segment_max(tf.reduce_max(tf.stack(terms), 0), cell, total)
        empty = tf.repeat(per_cell == 0, shape[0] * shape[1])
        y = tf.where(empty[:, None], tf.zeros([], x.dtype), largest)
    else:
        sums = tf.math.unsorted_segment_sum(tf.add_n(terms), cell, total)
        y = sums / tf.cast(tf.maximum(tf.repeat(per_cell, shape[0] * shape[1]), 1), x.dtype)[:, None]
    y = tf.reshape(y, vector([size(starts, 0), *shape, channels]))
    return tf.transpose(y, [0, 3, 1, 2])


def _samples(
    cells: tf.Tensor, regions: Size, shape: tuple[int, int], ratio: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return all samples of all cells in one row, since regions may have different numbers of them.

    Args:
        cells: ``[R, 2]``, height and width of each region's cells.
        regions: R.
        shape: Number of cells in both directions.
        ratio: Number of samples of a cell in either direction; 0 for one an element.

    Returns:
        Of each sample the region and the cell; of each region the number of samples in a cell; of each sample the place
        in its region, in cells.
    """
    count = shape[0] * shape[1]
    samples = (
        tf.cast(tf.math.ceil(cells), tf.int64) if ratio == 0 else tf.fill(tf.shape(cells), tf.cast(ratio, tf.int64))
    )
    samples = tf.maximum(samples, 0)
    per_cell = tf.reduce_prod(samples, 1)
    cell = tf.repeat(length(regions * count), tf.repeat(per_cell, count))
    region, place = cell // count, cell % count
    many = tf.gather(per_cell, region)
    number = length(tf.size(cell, tf.int64)) - tf.gather(tf.cumsum(per_cell * count, exclusive=True), region)
    across = tf.gather(samples, region)
    within = tf.stack([number % many // across[:, 1], number % many % across[:, 1]], 1)
    index = tf.cast(tf.stack([place // shape[1], place % shape[1]], 1), cells.dtype)
    offset = (tf.cast(within, cells.dtype) + 0.5) / tf.cast(across, cells.dtype)
    return region, cell, per_cell, index + offset


def _corners(points: tf.Tensor, plane: Sequence[int]) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Return position and weight of the four elements around each of the points ``[S, 2]``."""
    extent = vector(plane)
    inside = tf.reduce_all((points >= -1) & (points <= tf.cast(extent, points.dtype)), 1)
    points = tf.clip_by_value(points, 0, tf.cast(extent - 1, points.dtype))
    low = tf.cast(tf.math.floor(points), tf.int64)
    high = tf.minimum(low + 1, extent - 1)
    upper = points - tf.cast(low, points.dtype)
    corners = []
    for (y, by_y), (x, by_x) in itertools.product(
        *(((low[:, axis], 1 - upper[:, axis]), (high[:, axis], upper[:, axis])) for axis in range(2))
    ):
        corners.append((y * extent[1] + x, tf.where(inside, by_y * by_x, tf.zeros([], points.dtype))))
    return corners


def _computing(x: tf.Tensor) -> tf.Tensor:
    """Return x in a float dtype that holds its sums."""
    if x.dtype in (tf.float32, tf.float64) or x.dtype.is_complex:
        return x
    return tf.cast(x, tf.float32 if x.dtype.is_floating else tf.float64)
