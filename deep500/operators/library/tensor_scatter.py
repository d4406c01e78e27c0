"""ONNX TensorScatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._scattering import scattered, scattered_back
from deep500.operators.library._tensors import is_float, normalise_axis, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["TensorScatter"]


class TensorScatter(Operator):
    r"""Write an update into a cache, for each sample of the batch from an index of its own on.

    Inputs: past_cache ``[N, ..., S, ...]`` of any dtype; update ``[N, ..., T, ...]`` with T <= S; optionally
    write_indices, int64 ``[N]``, by default 0. Output: present_cache, a new tensor of past_cache's shape.

    Source: ONNX TensorScatter, version 24.
    """

    def __init__(self, *, axis: int = -2, mode: str = "linear") -> None:
        """Set the attributes.

        Args:
            axis: The axis of the sequence, not the first one; negative values count from the back.
            mode: ``"linear"``, or ``"circular"``: what lies beyond the end goes to the begin.

        Raises:
            OperatorError: The axis is no integer, or there is no such mode.
        """
        self.axis = attributes.integer("TensorScatter", "axis", axis)
        self.mode = attributes.choice("TensorScatter", "mode", mode, ("linear", "circular"))

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Write the update.

        Raises:
            OperatorError: Dtypes or shapes do not fit, or the update would go beyond the end of the cache.
        """
        cache, update, places = self._read(inputs)
        return (scattered(cache, places, update, "none"),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the cache and the update."""
        cache, update, places = self._read(fwd_inputs)
        if grads[0] is None or not is_float(cache.dtype):
            return (None,) * len(fwd_inputs)
        by_cache, by_update = scattered_back(np.asarray(grads[0]), cache, places, update, "none")
        return returned([by_cache, by_update, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, Array]:
        """Check the inputs; return the cache, the update, and the flat index to which each element of it goes."""
        received = take_inputs("TensorScatter", inputs, ["past_cache", "update"], ["write_indices"])
        cache, update, given = present(received[0]), present(received[1]), received[2]
        axis = normalise_axis("TensorScatter", self.axis, cache.ndim)
        others = [i for i in range(cache.ndim) if i != axis]
        fits = update.ndim == cache.ndim and all(update.shape[i] == cache.shape[i] for i in others)
        starts = np.zeros(cache.shape[:1], np.int64) if given is None else given
        if axis == 0 or not fits or update.shape[axis] > cache.shape[axis] or starts.shape != cache.shape[:1]:
            raise OperatorError(
                f"TensorScatter: received a cache of shape {cache.shape}, an update of shape {update.shape} and "
                f"write_indices of shape {starts.shape}; accepted are an update of the cache's shape but for axis "
                f"{axis}, which is not the first one and not longer, and one index for each sample."
            )
        size, length = cache.shape[axis], update.shape[axis]
        rows = starts.astype(np.int64)[:, None] + np.arange(length)
        if self.mode == "circular":
            rows = rows % max(size, 1)
        if rows.size and (rows.min() < 0 or rows.max() >= size):
            raise OperatorError(
                f"TensorScatter: received write_indices {starts.tolist()} for an update of {length} entries and a "
                f"cache of {size}; accepted are indices from 0 to {size - length}, or the mode 'circular'."
            )
        numbers = np.arange(cache.size).reshape(cache.shape)
        shape = [length if i == axis else cache.shape[0] if i == 0 else 1 for i in range(cache.ndim)]
        return cache, update, np.take_along_axis(numbers, np.broadcast_to(rows.reshape(shape), update.shape), axis)
