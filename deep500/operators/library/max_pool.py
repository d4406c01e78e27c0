"""ONNX MaxPool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._pooling import Pooling
from deep500.operators.library._tensors import compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.library._windows import padded
from deep500.operators.operator import Array, OptionalArray
from deep500.operators.windows import Windows

__all__ = ["MaxPool"]


class MaxPool(Pooling):
    r"""Maximum of every window over the spatial axes.

    .. math::
        Y_{n,c,p} = \max_k X_{n,\,c,\,p \cdot \text{strides} + k \cdot \text{dilations} - \text{pads}}

    over the elements that lie in X. Input X ``[N, C, D1, ...]``; outputs Y ``[N, C, o1, ...]`` in X's dtype and,
    always, Indices of the same shape (int64): the place of the maximum in the flattened X. X is float16, bfloat16,
    float32, float64, int8 or uint8.

    Where several elements are the maximum, the first one in row-major order is taken, and receives the gradient. A NaN
    in a window is its maximum, and the first NaN receives the gradient (ONNX does not say; PyTorch does the same). A
    window that lies wholly in the padding gives the lowest value of the dtype (minus infinity for floats), the index
    -1, and no gradient.

    Source: ONNX MaxPool, version 22.
    """

    def __init__(self, *, storage_order: int = 0, **window: Any) -> None:
        """Set the attributes.

        Args:
            storage_order: 1 to count Indices within an image's channel in column-major order.
            **window: Those of the window; see :class:`~deep500.operators.library._pooling.Pooling`.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(**window)
        self.storage_order = attributes.flag("MaxPool", "storage_order", storage_order)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y and Indices.

        Raises:
            OperatorError: X has another dtype or no spatial axis, or no window fits into it.
        """
        x, windows = self._read(inputs)
        y, indices = _maxima(x, windows, "F" if self.storage_order else "C")
        return y, indices

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: that of every Y goes to the element that is the maximum."""
        x, windows = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None,)
        if len(fwd_outputs) > 1 and not self.storage_order:
            indices = np.asarray(fwd_outputs[1])
        else:
            indices = _maxima(x, windows, "C")[1]
        wide = compute_dtype(x.dtype)
        places, values = indices.reshape(-1), np.asarray(grads[0]).reshape(-1).astype(wide, copy=False)
        inside = places >= 0
        if not inside.all():
            places, values = places[inside], values[inside]
        by_x = np.zeros(x.size, wide)
        np.add.at(by_x, places, values)
        return returned([by_x.reshape(x.shape)], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Windows]:
        x = present(take_inputs("MaxPool", inputs, ["X"])[0])
        if not is_float(x.dtype) and x.dtype not in (np.int8, np.uint8):
            raise OperatorError(f"MaxPool: received X of {x.dtype}; accepted are floats, int8 and uint8.")
        if x.ndim < 3:
            raise OperatorError(f"MaxPool: received X of shape {x.shape}; accepted is [N, C, D1, ...], rank 3 or more.")
        return x, self.windows.plan(x.shape[2:])


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _maxima(x: Array, windows: Windows, order: Any) -> tuple[Array, Array]:
    """Return the maxima, and their places in the flattened tensor with the given order of the spatial axes."""
    wide = compute_dtype(x.dtype)
    seen = padded(x, windows, _lowest(wide), wide)
    offsets = list(windows.offsets())
    y = seen[offsets[0]].copy()
    for offset in offsets[1:]:
        np.maximum(y, seen[offset], out=y)
    pixels = int(np.prod(windows.size))
    place = padded(np.arange(pixels).reshape(windows.size, order=order), windows, -1, np.dtype(np.int64))
    taps = _first_hits(y, [seen[offset] for offset in offsets], [place[offset] >= 0 for offset in offsets])
    # For every element of a window and every window its place in the image; a last row for windows without a hit.
    places = np.stack([*(place[offset] for offset in offsets), np.full(windows.output, -1)])
    per_image = places[0].size
    images = x.shape[0] * x.shape[1]
    flat = taps.reshape(images, per_image).astype(np.int64) * per_image + np.arange(per_image)
    indices = places.reshape(-1)[flat]
    indices += np.where(indices >= 0, np.arange(images)[:, None] * pixels, 0)
    return y.astype(x.dtype, copy=False), indices.reshape(y.shape)


def _first_hits(y: Array, elements: list[Array], inside: list[Array]) -> Array:
    """Return which element of its window each maximum is, the first of several; their number where none is.

    Args:
        y: The maxima, ``[N, C, o1, ...]``.
        elements: The first, second, ... element of every window, each of that shape.
        inside: Whether it lies in the image, ``[o1, ...]``; the padding equals a true minus infinity.
    """
    nan = np.isnan(y) if y.dtype.kind == "f" else np.zeros((), np.bool_)
    has_nan = bool(nan.any())
    hits = np.full(y.shape, len(elements), np.min_scalar_type(len(elements)))
    for tap in reversed(range(len(elements))):  # The first one is written last, and stays.
        hit = elements[tap] == y
        if has_nan:
            hit |= nan & np.isnan(elements[tap])
        if not inside[tap].all():
            hit &= inside[tap]
        np.copyto(hits, tap, where=hit)
    return hits
