"""Pooling that PyTorch has no kernel for, or whose windows only a run can lay out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch._sizes import as_integers
from deep500.frameworks.pytorch.lowering._windows import lay_out, pad_to_span, window_counts, window_view

__all__ = ["average", "maximum", "norm", "over_positions", "region_maximum", "unpool", "whole_places"]

_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


@recorded
def maximum(x: torch.Tensor, settings: Sequence[Any], column_major: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maximum of each window of ``[N, C, D1, ...]``, and its place in the whole tensor."""
    windows = lay_out(settings, x.shape[2:])
    rank = len(windows.kernel)
    lowest = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    parts = window_view(pad_to_span(x, windows, lowest), windows)
    values, chosen = parts.flatten(2 + rank).max(2 + rank)
    place = torch.zeros_like(chosen)
    for axis in reversed(range(rank)):
        element = chosen % windows.kernel[axis]
        chosen = chosen // windows.kernel[axis]
        first = torch.arange(windows.output[axis], device=x.device) * windows.strides[axis] - windows.begin[axis]
        first = first.reshape([-1 if other == axis else 1 for other in range(rank)])
        size = windows.size[axis]
        # A window that holds nothing but the lowest value may choose padding.
        position = (first + element * windows.dilations[axis]).clamp(0, size - 1)
        place = place + position * math.prod(windows.size[axis + 1 :])
    return values, whole_places(place, x, column_major)


@recorded
def whole_places(places: torch.Tensor, x: torch.Tensor, column_major: bool) -> torch.Tensor:
    """Return places in a channel of ``[N, C, D1, ...]`` as places in the whole tensor."""
    sizes = x.shape[2:]
    if column_major:
        left, places, step = places, torch.zeros_like(places), math.prod(sizes)
        for size in reversed(sizes):
            step //= size
            places, left = places + left % size * step, left // size
    channels = torch.arange(x.shape[0] * x.shape[1], device=x.device) * math.prod(sizes)
    return places + channels.reshape(x.shape[0], x.shape[1], *(1,) * len(sizes))


@recorded
def average(x: torch.Tensor, settings: Sequence[Any], include_pad: bool) -> torch.Tensor:
    """Return the mean of each window of ``[N, C, D1, ...]``."""
    windows = lay_out(settings, x.shape[2:])
    rank = len(windows.kernel)
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    padded = pad_to_span(wide, windows, 0.0)
    if rank in _AVERAGE and all(dilation == 1 for dilation in windows.dilations):
        mean = _AVERAGE[rank](padded, windows.kernel, windows.strides)
    else:
        mean = window_view(padded, windows).mean(tuple(range(2 + rank, 2 + 2 * rank)))
    counts = window_counts(windows, include_pad=include_pad, like=wide)
    # A window without any element that counts gives 0.
    return (mean * (math.prod(windows.kernel) / counts.clamp_min(1.0))).to(x.dtype)


@recorded
def norm(x: torch.Tensor, settings: Sequence[Any], p: int) -> torch.Tensor:
    """Return ``sum(|x|^p)^(1/p)`` of each window of ``[N, C, D1, ...]``."""
    windows = lay_out(settings, x.shape[2:])
    rank = len(windows.kernel)
    parts = window_view(pad_to_span(x, windows, 0.0), windows)
    result: torch.Tensor = torch.linalg.vector_norm(parts, p, tuple(range(2 + rank, 2 + 2 * rank)))
    return result


@recorded
def over_positions(x: torch.Tensor, what: str, p: int) -> torch.Tensor:
    """Return mean, maximum or norm over the spatial positions of ``[N, C, D1, ...]``, of which there may be none."""
    axes = tuple(range(2, x.dim()))
    if what == "norm":
        norm: torch.Tensor = torch.linalg.vector_norm(x, p, axes, keepdim=True) if axes else x.abs()
        return norm
    if not axes:
        return x.clone()
    return x.mean(axes, keepdim=True) if what == "mean" else x.amax(axes, keepdim=True)


@recorded
def unpool(
    x: torch.Tensor,
    places: torch.Tensor,
    shape: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
) -> torch.Tensor:
    """Return zeros, and each element of ``[N, C, D1, ...]`` at its place in the tensor that was pooled.

    Places are those of the tensor whose sizes the attributes tell; a given shape adds zeros after them.
    """
    rank = len(kernel)
    strides, pads = list(strides) or [1] * rank, list(pads) or [0] * (2 * rank)
    sizes = list(x.shape[:2])
    for axis, size in enumerate(x.shape[2:]):
        sizes.append((size - 1) * strides[axis] - pads[axis] - pads[rank + axis] + kernel[axis])
    flat = x.new_zeros(math.prod(sizes)).scatter(0, places.reshape(-1), x.reshape(-1))
    result = flat.reshape(sizes)
    if shape is None:
        return result
    pairs = [width for more, size in zip(reversed(as_integers(shape)), reversed(sizes)) for width in (0, more - size)]
    return F.pad(result, pairs)


@recorded
def region_maximum(x: torch.Tensor, regions: torch.Tensor, shape: Sequence[int], scale: float) -> torch.Tensor:
    """Return the maximum of each part of each region ``[batch, x1, y1, x2, y2]`` of ``[N, C, H, W]``.

    Parts without any element of the image are 0.
    """
    height, width = x.shape[2:]
    results = []
    for batch, *corners in regions.detach().to(torch.float64).tolist():
        # Rounded as in C++: halves away from 0.
        left, top, right, bottom = (int(math.copysign(math.floor(abs(c * scale) + 0.5), c)) for c in corners)
        right, bottom = max(right, left), max(bottom, top)
        begin_x, end_x = min(max(left, 0), width), min(max(right + 1, 0), width)
        begin_y, end_y = min(max(top, 0), height), min(max(bottom + 1, 0), height)
        part = x[int(batch), :, begin_y : max(end_y, begin_y), begin_x : max(end_x, begin_x)]
        pairs = [0, 0, 0, 0]
        if part.shape[2] < right + 1 - left or part.shape[1] < bottom + 1 - top:
            pairs = [max(0, min(-left, right + 1 - left)), 0, max(0, min(-top, bottom + 1 - top)), 0]
            pairs[1] = right + 1 - left - part.shape[2] - pairs[0]
            pairs[3] = bottom + 1 - top - part.shape[1] - pairs[2]
        pooled = F.adaptive_max_pool2d(F.pad(part, pairs, value=float("-inf")), tuple(shape))
        if any(pairs):
            inside = F.pad(torch.ones_like(part[:1], dtype=torch.float32), pairs)
            pooled = torch.where(F.adaptive_max_pool2d(inside, tuple(shape)) > 0, pooled, 0.0)
        results.append(pooled)
    return torch.stack(results) if results else x.new_zeros((0, x.shape[1], *shape))
