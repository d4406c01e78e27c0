"""Padding, image-to-column and its transpose for windows that slide over the spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from deep500.operators.operator import Array
from deep500.operators.windows import Windows

__all__ = ["columns", "image", "padded", "unpadded"]


def padded(x: Array, windows: Windows, value: Any, dtype: np.dtype[Any]) -> Array:
    """Return what the windows see of a tensor: its last axes padded to, or cut off at, the windows' span.

    Args:
        x: ``[..., D1, D2, ...]``.
        windows: Where the windows lie.
        value: What to pad with.
        dtype: Dtype of the result.

    Returns:
        A new tensor, or ``x`` itself where there is nothing to do.
    """
    covered, span = windows.covered, windows.span
    if covered == span and covered == windows.size:
        return x.astype(dtype, copy=False)
    shape = x.shape[: x.ndim - len(span)] + span
    result: Array = np.empty(shape, dtype) if covered == span else np.full(shape, value, dtype)
    result[windows.target] = x[windows.source]
    return result


def unpadded(x: Array, windows: Windows) -> Array:
    """Undo :func:`padded`: cut off the padding, and fill what no window sees with zeros."""
    covered = windows.covered
    inner = x[windows.target]
    if covered == windows.size:
        return inner
    result = np.zeros(x.shape[: x.ndim - len(covered)] + windows.size, x.dtype)
    result[windows.source] = inner
    return result


def columns(x: Array, windows: Windows, dtype: np.dtype[Any]) -> Array:
    """Lay every window out as a column (image to column).

    Args:
        x: ``[N, C, D1, D2, ...]``.
        windows: Where the windows lie.
        dtype: Dtype of the result.

    Returns:
        ``[C * K, N * P]`` with K elements a window and P windows an image.
    """
    rank = len(windows.size)
    seen = padded(x.swapaxes(0, 1), windows, 0, dtype)
    reach = tuple((k - 1) * d + 1 for k, d in zip(windows.kernel, windows.dilations, strict=True))
    view = sliding_window_view(seen, reach, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, step) for step in (*windows.strides, *windows.dilations)]
    view = view[(slice(None), slice(None), *steps)]
    order = (0, *range(2 + rank, 2 + 2 * rank), 1, *range(2, 2 + rank))
    rows = x.shape[1] * int(np.prod(windows.kernel))
    return view.transpose(order).reshape(rows, x.shape[0] * int(np.prod(windows.output)))


def image(cols: Array, windows: Windows, batch: int, channels: int) -> Array:
    """Add every column back to where :func:`columns` took it from (column to image, the transpose).

    Args:
        cols: ``[C * K, N * P]``.
        windows: Where the windows lie.
        batch: N.
        channels: C.

    Returns:
        ``[N, C, D1, D2, ...]``, a view with the first two axes swapped.
    """
    elements = int(np.prod(windows.kernel))
    taps = cols.reshape(channels, elements, batch, *windows.output)
    total = np.zeros((channels, batch, *windows.span), cols.dtype)
    for tap, place in enumerate(windows.offsets()):
        total[place] += taps[:, tap]
    return unpadded(total, windows).swapaxes(0, 1)
