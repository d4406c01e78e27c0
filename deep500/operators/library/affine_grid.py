"""ONNX AffineGrid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["AffineGrid"]

_NAME = "AffineGrid"


class AffineGrid(Operator):
    r"""Positions of an image's pixels after an affine map, as GridSample takes them.

    .. math::
        \text{grid}_{n,p} = \theta_n \, (x_p, y_p, 1)^T

    and likewise with :math:`(x_p, y_p, z_p, 1)`, for pixels p from -1 to 1 over the image. Inputs: theta ``[N, 2, 3]``
    or ``[N, 3, 4]``, float16, bfloat16, float32 or float64; size, int64, the image's shape ``[N, C, H, W]`` or
    ``[N, C, D, H, W]``. Output ``[N, H, W, 2]`` or ``[N, D, H, W, 3]`` of theta's dtype; 16-bit floats are computed in
    float32.

    Source: ONNX AffineGrid, version 20; https://arxiv.org/abs/1506.02025.
    """

    def __init__(self, *, align_corners: int = 0) -> None:
        """Set the attribute.

        Args:
            align_corners: 1 when -1 and 1 are the centres of the outermost pixels, 0 when they are their edges.

        Raises:
            OperatorError: It is neither 0 nor 1.
        """
        self.align_corners = attributes.flag(_NAME, "align_corners", align_corners)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the grid.

        Raises:
            OperatorError: The shapes of theta and size do not fit to one another.
        """
        theta, spatial = _read(inputs)
        wide = compute_dtype(theta.dtype)
        grid = np.matmul(self._pixels(spatial, wide), theta.astype(wide, copy=False).swapaxes(1, 2))
        return (grid.reshape(theta.shape[0], *spatial, theta.shape[1]).astype(theta.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by theta."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        theta, spatial = _read(fwd_inputs)
        wide = compute_dtype(theta.dtype)
        count = int(np.prod(spatial))
        gradient = np.asarray(grads[0]).astype(wide, copy=False).reshape(theta.shape[0], count, theta.shape[1])
        return returned([np.matmul(gradient.swapaxes(1, 2), self._pixels(spatial, wide)), None], fwd_inputs)

    def _pixels(self, spatial: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return the pixels' positions, the last axis first, and 1: ``[P, r + 1]``."""
        axes = []
        for size in spatial:
            steps = np.arange(size, dtype=dtype)
            # The only pixel of an axis lies at -1, where its start would be.
            axes.append(2 * steps / max(1, size - 1) - 1 if self.align_corners else (2 * steps + 1) / max(1, size) - 1)
        grids = np.meshgrid(*axes, indexing="ij")
        ones = np.ones(int(np.prod(spatial)), dtype)
        return np.stack([*(grid.reshape(-1) for grid in reversed(grids)), ones], axis=1)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, tuple[int, ...]]:
    """Check the inputs; return theta and the spatial shape."""
    theta, size = (present(t) for t in take_inputs(_NAME, inputs, ["theta", "size"]))
    check_dtypes(_NAME, ["theta"], [theta], "floats")
    sizes = tuple(int(n) for n in size.reshape(-1))
    rank = len(sizes) - 2
    if rank not in (2, 3) or min(sizes) < 0 or theta.shape != (sizes[0], rank, rank + 1):
        raise OperatorError(
            f"{_NAME}: received theta of shape {theta.shape} and size {list(sizes)}; accepted are [N, 2, 3] and "
            f"[N, C, H, W], or [N, 3, 4] and [N, C, D, H, W]."
        )
    return theta, sizes[2:]
