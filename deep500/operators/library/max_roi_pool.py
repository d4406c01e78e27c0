"""ONNX MaxRoiPool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["MaxRoiPool"]

_NAME = "MaxRoiPool"


class MaxRoiPool(Operator):
    """Maximum of every bin into which regions of an image are divided.

    Inputs: X ``[N, C, H, W]``, rois ``[R, 5]``, regions as image, x1, y1, x2, y2; both float16, bfloat16, float32 or
    float64, and of one dtype. Output ``[R, C, *pooled_shape]``.

    A region's corners, times ``spatial_scale``, are rounded to pixels (half away from zero), which belong to it; it is
    at least one pixel large. Bins are rounded outwards, so that they may overlap, and cut off at the image's edge;
    a bin without pixels gives 0. The specification leaves this open; it is what Fast R-CNN and ONNX Runtime do. There
    is a gradient by X, to the first of equal maxima, and none by the regions.

    Source: ONNX MaxRoiPool, version 22; R. Girshick, https://arxiv.org/abs/1504.08083.
    """

    def __init__(self, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> None:
        """Set the attributes.

        Args:
            pooled_shape: Number of bins along height and width.
            spatial_scale: What the regions' coordinates are multiplied with.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.pooled_shape = attributes.integers(_NAME, "pooled_shape", pooled_shape, minimum=1) or ()
        self.spatial_scale = attributes.real(_NAME, "spatial_scale", spatial_scale)
        if len(self.pooled_shape) != 2:
            raise OperatorError(f"{_NAME}: the attribute pooled_shape is {pooled_shape!r}; accepted are two entries.")

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the maxima.

        Raises:
            OperatorError: Shapes or dtypes do not fit, or a region names an image that is not there.
        """
        x, rois = _read(inputs)
        y = np.zeros((len(rois), x.shape[1], *self.pooled_shape), x.dtype)
        for place, image, rows, columns in self._bins(x, rois):
            y[(place[0], slice(None), *place[1:])] = x[image, :, rows, columns].max(axis=(1, 2))
        return (y,)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of every bin goes to its maximum."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, rois = _read(fwd_inputs)
        gradient = np.asarray(grads[0])
        by_x = np.zeros(x.shape, compute_dtype(x.dtype))
        channels = np.arange(x.shape[1])
        for place, image, rows, columns in self._bins(x, rois):
            part = x[image, :, rows, columns]
            row, column = np.divmod(part.reshape(len(part), -1).argmax(axis=1), part.shape[2])
            share = gradient[(place[0], slice(None), *place[1:])].astype(by_x.dtype)
            by_x[image, channels, rows.start + row, columns.start + column] += share
        return returned([by_x, None], fwd_inputs)

    def _bins(self, x: Array, rois: Array) -> Iterator[tuple[tuple[int, int, int], int, slice, slice]]:
        """Iterate over the bins that hold pixels: region, row and column of the bin; image; rows and columns in it."""
        scale = compute_dtype(x.dtype).type(self.spatial_scale)
        for number, roi in enumerate(rois.astype(compute_dtype(x.dtype))):
            x1, y1, x2, y2 = _rounded(roi[1:] * scale)
            rows = _divided(y1, y2, self.pooled_shape[0], x.shape[2])
            columns = _divided(x1, x2, self.pooled_shape[1], x.shape[3])
            for i, row in enumerate(rows):
                for j, column in enumerate(columns):
                    if row.start < row.stop and column.start < column.stop:
                        yield (number, i, j), int(roi[0]), row, column


def _rounded(values: Array) -> list[int]:
    return [int(v) for v in np.sign(values) * np.floor(np.abs(values) + 0.5)]


def _divided(first: int, last: int, bins: int, size: int) -> list[slice]:
    """Return the pixels of every bin along one axis of an image of a size."""
    length = max(last - first + 1, 1)
    edges = [(first + i * length // bins, first - (-(i + 1) * length // bins)) for i in range(bins)]
    return [slice(min(max(start, 0), size), min(max(stop, 0), size)) for start, stop in edges]


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
    """Check the inputs."""
    x, rois = (present(t) for t in take_inputs(_NAME, inputs, ["X", "rois"]))
    check_dtypes(_NAME, ["X", "rois"], [x, rois], "floats")
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise OperatorError(
            f"{_NAME}: received X of shape {x.shape} and rois of shape {rois.shape}; accepted are [N, C, H, W] and "
            f"[R, 5]."
        )
    if rois.size and not (rois[:, 0].min() >= 0 and rois[:, 0].max() < x.shape[0]):
        raise OperatorError(
            f"{_NAME}: received regions of the images {rois[:, 0].tolist()}; accepted are 0 to {x.shape[0] - 1}."
        )
    return x, rois
