"""The functions of update rules on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumpyFunctions"]


class NumpyFunctions:
    """What :class:`deep500.networks.tensor_functions.TensorFunctions` describes, on NumPy arrays."""

    def sqrt(self, x: Any) -> Any:
        """Return the square root of each element; NaN below 0, as in every framework."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    def absolute(self, x: Any) -> Any:
        """Return the absolute value of each element."""
        return np.absolute(x)

    def sign(self, x: Any) -> Any:
        """Return -1, 0 or 1 for each element."""
        return np.sign(x)

    def maximum(self, x: Any, y: Any) -> Any:
        """Return the larger of two elements at each place; NaN where one is."""
        return np.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """Return the smaller of two elements at each place; NaN where one is."""
        return np.minimum(x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Return ``x`` where a condition holds and ``y`` elsewhere."""
        return np.where(condition, x, y)

    def sum(self, x: Any) -> Any:
        """Return the sum of all elements; NumPy adds up narrow floats in float32 and pairwise."""
        return np.sum(x, dtype=_wide(x)).astype(np.asarray(x).dtype)

    def norm(self, x: Any) -> Any:
        """Return the 2-norm of all elements, added up at least in float32."""
        wide = np.asarray(x, _wide(x))
        return np.sqrt(np.sum(wide * wide)).astype(np.asarray(x).dtype)

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the product of two matrices."""
        return np.matmul(x, y)

    def transpose(self, x: Any, permutation: Sequence[int]) -> Any:
        """Return a tensor whose axis ``i`` is axis ``permutation[i]`` of ``x``."""
        return np.transpose(x, permutation)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Return the elements, in their order, in another shape; one size may be -1."""
        return np.reshape(x, tuple(shape))

    def zeros_like(self, x: Any) -> Any:
        """Return zeros of the shape and dtype of a tensor."""
        return np.zeros_like(x)

    def ones_like(self, x: Any) -> Any:
        """Return ones of the shape and dtype of a tensor."""
        return np.ones_like(x)

    def global_norm(self, tensors: Sequence[Any]) -> np.float64:
        """Return the 2-norm of all elements of all tensors together, added up in float64."""
        squares: list[Any] = [np.sum(np.square(np.asarray(x, np.float64))) for x in tensors]
        return np.float64(np.sqrt(np.sum(squares)))

    def cast_like(self, x: Any, like: Any) -> NDArray[Any]:
        """Return a tensor in the dtype of another one."""
        return np.asarray(x).astype(like.dtype, copy=False)


def _wide(x: Any) -> np.dtype[Any]:
    """Return the dtype in which elements are added up: their own, but no narrower float than float32."""
    dtype = np.asarray(x).dtype
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype
