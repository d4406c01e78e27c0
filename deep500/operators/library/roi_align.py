"""ONNX RoiAlign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._sampling import Taps, corners, linear_taps, sample, sample_backward
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["RoiAlign"]

_NAME = "RoiAlign"


class _Region(NamedTuple):
    """A region of interest: its number, its image, the pixels around its sampling points, and their number a bin."""

    number: int
    image: int
    taps: list[Taps]  # [2, 1, P], P points in the order bin row, point row, bin column, point column
    grid: tuple[int, int]


class RoiAlign(Operator):
    r"""Mean or maximum of values at sampling points in the bins into which regions of an image are divided.

    Inputs: X ``[N, C, H, W]``; rois ``[R, 4]``, regions as x1, y1, x2, y2, of X's dtype; batch_indices ``[R]``, int64,
    the region's image. Output ``[R, C, output_height, output_width]``. X is float16, bfloat16, float32 or float64;
    16-bit floats are computed in float32.

    Every bin has ``sampling_ratio`` points along either axis, or as many as its size in pixels rounded up. Their values
    are interpolated linearly between pixels; a point more than a pixel outside of the image counts as 0. The mode
    ``"max"`` takes the maximum of the weighted pixels around the points, not of the interpolated values: ONNX'
    reference and its test cases have it so. A bin without points gives 0.

    There is a gradient by X, none by the regions.

    Source: ONNX RoiAlign, version 22; https://arxiv.org/abs/1703.06870.
    """

    def __init__(
        self,
        *,
        coordinate_transformation_mode: str = "half_pixel",
        mode: str = "avg",
        output_height: int = 1,
        output_width: int = 1,
        sampling_ratio: int = 0,
        spatial_scale: float = 1.0,
    ) -> None:
        """Set the attributes.

        Args:
            coordinate_transformation_mode: ``"half_pixel"`` to move regions by half a pixel, or
                ``"output_half_pixel"`` not to, and to make them at least one pixel large.
            mode: ``"avg"`` or ``"max"``.
            output_height: Number of bins along the height.
            output_width: Number of bins along the width.
            sampling_ratio: Points a bin along either axis; 0 to adapt it to the region.
            spatial_scale: What the regions' coordinates are multiplied with.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        modes = ("half_pixel", "output_half_pixel")
        found = attributes.choice(_NAME, "coordinate_transformation_mode", coordinate_transformation_mode, modes)
        self.half_pixel = found == "half_pixel"
        self.mode = attributes.choice(_NAME, "mode", mode, ("avg", "max"))
        self.bins = (
            attributes.integer(_NAME, "output_height", output_height, minimum=1),
            attributes.integer(_NAME, "output_width", output_width, minimum=1),
        )
        self.sampling_ratio = attributes.integer(_NAME, "sampling_ratio", sampling_ratio, minimum=0)
        self.spatial_scale = attributes.real(_NAME, "spatial_scale", spatial_scale)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the bins.

        Raises:
            OperatorError: Shapes or dtypes do not fit, or a region names an image that is not there.
        """
        x, rois, images = _read(inputs)
        wide = compute_dtype(x.dtype)
        y = np.zeros((len(rois), x.shape[1], *self.bins), wide)
        for region in self._regions(x, rois, images):
            image = x[region.image][None].astype(wide, copy=False)
            if self.mode == "avg":
                y[region.number] = self._points(sample(image, region.taps)[0], region.grid).mean(axis=(2, 4))
            else:
                y[region.number] = self._points(_weighted(image, region), region.grid).max(axis=(0, 3, 5))
        return (y.astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, rois, images = _read(fwd_inputs)
        wide = compute_dtype(x.dtype)
        gradient = np.asarray(grads[0]).astype(wide, copy=False)
        by_x = np.zeros(x.shape, wide)
        for region in self._regions(x, rois, images):
            image = x[region.image][None].astype(wide, copy=False)
            by_bin = gradient[region.number]
            if self.mode == "avg":
                share = by_bin[:, :, None, :, None] / (region.grid[0] * region.grid[1])
                shape = (x.shape[1], self.bins[0], region.grid[0], self.bins[1], region.grid[1])
                by_points = np.broadcast_to(share, shape).reshape(1, x.shape[1], -1)
                by_x[region.image] += sample_backward(by_points, image, region.taps)[0][0]
            else:
                by_x[region.image] += self._by_maxima(by_bin, image, region)
        return returned([by_x, None, None], fwd_inputs)

    def _by_maxima(self, by_bin: Array, image: Array, region: _Region) -> Array:
        """Return the gradient by an image, all of it at the first of each bin's maxima."""
        channels, (rows, columns), (height, width) = image.shape[1], self.bins, region.grid
        order = (1, 2, 4, 3, 5, 0)  # channel, bin row, bin column, then what the maximum is taken over
        values = self._points(_weighted(image, region), region.grid).transpose(order)
        winner = values.reshape(channels, rows, columns, -1).argmax(axis=-1)
        found = list(corners(region.taps, image.shape[2:]))
        shape = (len(found), rows, height, columns, width)
        spread = (1, 3, 2, 4, 0)
        index, weight = (
            np.stack(part).reshape(shape).transpose(spread).reshape(1, rows, columns, -1)
            for part in ([corner.pixel for corner in found], [corner.weight for corner in found])
        )
        place = np.take_along_axis(np.broadcast_to(index, (channels, *index.shape[1:])), winner[..., None], -1)[..., 0]
        slope = np.take_along_axis(np.broadcast_to(weight, (channels, *weight.shape[1:])), winner[..., None], -1)
        by_image = np.zeros((channels, image.shape[2] * image.shape[3]), image.dtype)
        np.add.at(by_image, (np.arange(channels)[:, None, None], place), by_bin * slope[..., 0])
        return by_image.reshape(image.shape[1:])

    def _points(self, values: Array, grid: tuple[int, int]) -> Array:
        """Return values of sampling points, ``[..., P]``, with axes of their own for bins and the points in them."""
        return values.reshape(*values.shape[:-1], self.bins[0], grid[0], self.bins[1], grid[1])

    def _regions(self, x: Array, rois: Array, images: Array) -> Iterator[_Region]:
        """Iterate over the regions that have sampling points."""
        offset = 0.5 if self.half_pixel else 0.0
        for number, (roi, image) in enumerate(zip(rois, images, strict=True)):
            edges = roi.astype(compute_dtype(x.dtype)) * self.spatial_scale - offset
            axes, grid = [], []
            # Rows lie along y, the second and fourth coordinate; columns along x.
            for start, end, bins in ((edges[1], edges[3], self.bins[0]), (edges[0], edges[2], self.bins[1])):
                length = end - start if self.half_pixel else max(end - start, 1.0)
                points = self.sampling_ratio or max(0, int(np.ceil(length / bins)))
                grid.append(points)
                axes.append(start + length * ((np.arange(bins * points) + 0.5) / max(1, bins * points)))
            if 0 in grid or 0 in x.shape[1:]:
                continue
            rows, columns = np.meshgrid(*axes, indexing="ij")
            taps = [_taps(p.reshape(1, -1), size) for p, size in zip((rows, columns), x.shape[2:], strict=True)]
            yield _Region(number, int(image), taps, (grid[0], grid[1]))


def _taps(position: Array, size: int) -> Taps:
    """Return the pixels around positions: within the image up to a pixel beyond its edge, and none further out."""
    counts = (position >= -1) & (position <= size)
    taps = linear_taps(np.where(counts, np.clip(position, 0, size - 1), 0))
    return Taps(np.minimum(taps.pixel, size - 1).astype(np.int64), taps.weight * counts, taps.slope * counts)


def _weighted(image: Array, region: _Region) -> Array:
    """Return the weighted pixels around the points of an image ``[1, C, H, W]``, ``[4, C, P]``."""
    flat = image.reshape(image.shape[1], -1)
    found = corners(region.taps, image.shape[2:])
    return np.stack([np.where(weight == 0, 0, weight * flat[:, index[0]]) for index, weight, _ in found])


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array, Array]:
    """Check the inputs."""
    x, rois, images = (present(t) for t in take_inputs(_NAME, inputs, ["X", "rois", "batch_indices"]))
    check_dtypes(_NAME, ["X", "rois"], [x, rois], "floats")
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or images.shape != rois.shape[:1]:
        raise OperatorError(
            f"{_NAME}: received X of shape {x.shape}, rois of shape {rois.shape} and batch_indices of shape "
            f"{images.shape}; accepted are [N, C, H, W], [R, 4] and [R]."
        )
    if images.dtype.kind not in "iu" or (images.size and not 0 <= images.min() <= images.max() < x.shape[0]):
        raise OperatorError(
            f"{_NAME}: received batch_indices {images.tolist()} of {images.dtype}; accepted are int64 from 0 to "
            f"{x.shape[0] - 1}, images of X."
        )
    return x, rois, images
