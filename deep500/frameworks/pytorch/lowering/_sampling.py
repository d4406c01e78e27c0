"""Reading images between their elements: by grids, and by regions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded

__all__ = ["grid_sample", "non_max_suppression", "roi_align"]

_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}

#: Convolution coefficient of ONNX' and PyTorch's cubic sampling.
_CUBIC = -0.75


@recorded
def grid_sample(x: torch.Tensor, grid: torch.Tensor, mode: str, padding: str, align: bool) -> torch.Tensor:
    """Return the values of ``[N, C, D1, ...]`` at places that are given for every element of the result.

    Source: ONNX GridSample-22.
    """
    dtype = x.dtype
    wide = x if dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    places = grid.to(wide.dtype)
    if _is_native(x.dim(), mode, padding) and x.numel() and grid.numel():
        y = F.grid_sample(wide, places, _MODES[mode], padding, align)
    else:
        y = _sampled(wide, places, mode, padding, align)
    return y if y.dtype == dtype else y.to(dtype)


def _is_native(rank: int, mode: str, padding: str) -> bool:
    """Whether PyTorch means the same.

    It rounds after it reflects, and cubic sampling pads only the elements, not the place: ONNX does it the other way.
    """
    if mode == "linear":
        return rank in (4, 5)
    return (mode == "nearest" and rank in (4, 5) and padding != "reflection") or (
        mode == "cubic" and rank == 4 and padding == "zeros"
    )


def _sampled(x: torch.Tensor, grid: torch.Tensor, mode: str, padding: str, align: bool) -> torch.Tensor:
    sizes = x.shape[2:]
    axes = []
    for axis, size in enumerate(sizes):
        place = grid[..., len(sizes) - 1 - axis]
        place = (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        if mode == "nearest":
            place = torch.round(place)
        if padding == "border":
            place = torch.where((place < low) | (place > high), place.clamp(0, size - 1), place)
        elif padding == "reflection":
            place = _reflected(place, low, high)
        axes.append(_terms(place, size, mode, padding, low, high))
    flat = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)
    total = x.new_zeros((*x.shape[:2], *grid.shape[1:-1]))
    for terms in itertools.product(*axes):
        total = total + _term(flat, sizes, terms, total.shape)
    return total


def _reflected(place: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return places reflected at two borders until they are between them."""
    extent = high - low
    if extent <= 0:
        return torch.zeros_like(place)
    beyond = torch.where(place < low, low - place, place - high)
    turns = torch.floor(beyond / extent)
    rest = beyond - turns * extent
    from_low = (turns % 2 == 0) == (place < low)
    folded = torch.where(from_low, low + rest, high - rest)
    return torch.where((place < low) | (place > high), folded, place)


def _terms(
    place: torch.Tensor, size: int, mode: str, padding: str, low: float, high: float
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the elements of an axis around places, as indices inside it, with their weights."""
    base = place.floor()
    part = place - base
    if mode == "nearest":
        offsets, weights = [0], [torch.ones_like(place)]
    elif mode == "linear":
        offsets, weights = [0, 1], [1 - part, part]
    else:
        offsets, weights = [-1, 0, 1, 2], [_far(part + 1), _near(part), _near(1 - part), _far(2 - part)]
    terms = []
    for offset, weight in zip(offsets, weights):
        index = base.detach() + offset
        if padding == "zeros":
            weight = torch.where((index >= 0) & (index < size), weight, 0.0)
        elif padding == "reflection":
            index = _reflected(index, low, high)
        terms.append((index.clamp(0, size - 1).to(torch.int64), weight))
    return terms


def _near(distance: torch.Tensor) -> torch.Tensor:
    return ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1


def _far(distance: torch.Tensor) -> torch.Tensor:
    return ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC


def _term(
    flat: torch.Tensor, sizes: Sequence[int], terms: Sequence[tuple[torch.Tensor, torch.Tensor]], shape: Sequence[int]
) -> torch.Tensor:
    """Return the elements that one index an axis names, times their weights."""
    number = torch.zeros((), dtype=torch.int64, device=flat.device)
    factor = torch.ones((), dtype=flat.dtype, device=flat.device)
    for size, (index, weight) in zip(sizes, terms):
        number, factor = number * size + index, factor * weight
    number = number.reshape(shape[0], 1, -1).expand(-1, shape[1], -1)
    return torch.gather(flat, 2, number).reshape(tuple(shape)) * factor.unsqueeze(1)


@recorded
def roi_align(
    x: torch.Tensor,
    regions: torch.Tensor,
    images: torch.Tensor,
    size: tuple[int, int],
    scale: float,
    ratio: int,
    mode: str,
    half_pixel: bool,
) -> torch.Tensor:
    """Return regions of images, each in ``size`` bins: the mean or maximum of samples in every bin.

    Source: ONNX RoiAlign-22.
    """
    dtype = x.dtype
    wide = x if dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    if not images.numel():
        return x.new_zeros((0, x.shape[1], *size))
    corners = regions.to(wide.dtype) * scale - (0.5 if half_pixel else 0.0)
    rows = [_bins(corners[:, axis], corners[:, axis + 2], size[1 - axis], ratio, half_pixel) for axis in (1, 0)]
    (y, y_counted, y_count), (x_place, x_counted, x_count) = rows
    # [regions, bin rows, bin columns, samples down, samples across]
    down, across = y[:, :, None, :, None], x_place[:, None, :, None, :]
    shape = torch.broadcast_shapes(down.shape, across.shape)
    height, width = wide.shape[2:]
    inside = (down >= -1) & (down <= height) & (across >= -1) & (across <= width)
    flat = wide[images.to(torch.int64)].flatten(2)
    neighbours = []
    for (row, row_weight), (column, column_weight) in itertools.product(_around(down, height), _around(across, width)):
        weight = torch.where(inside, row_weight * column_weight, 0.0)
        number = (row * width + column).expand(shape).reshape(shape[0], 1, -1).expand(-1, flat.shape[1], -1)
        neighbours.append(torch.gather(flat, 2, number).reshape(-1, flat.shape[1], *shape[1:]) * weight.unsqueeze(1))
    counted = (y_counted[:, :, None, :, None] & x_counted[:, None, :, None, :]).expand(shape).unsqueeze(1)
    if mode == "avg":
        count = (y_count * x_count).clamp_min(1).reshape(-1, 1, 1, 1)
        result = torch.where(counted, sum(neighbours[1:], neighbours[0]), 0.0).sum((-2, -1)) / count
    else:
        # ONNX takes the maximum of the weighted neighbours, not of the interpolated samples.
        largest = torch.stack(neighbours).amax(0)
        result = torch.where(counted, largest, -math.inf).flatten(-2).amax(-1)
        result = torch.where(counted.flatten(-2).any(-1), result, 0.0)
    return result.to(dtype)


def _bins(
    start: torch.Tensor, end: torch.Tensor, bins: int, ratio: int, half_pixel: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the samples of all bins along one axis, ``[regions, bins, samples]``, which count, and how many."""
    extent = end - start
    if not half_pixel:
        extent = extent.clamp_min(1.0)
    width = extent / bins
    count = torch.full_like(width, ratio) if ratio > 0 else width.detach().ceil().clamp_min(0)
    most = ratio if ratio > 0 else max(int(count.max()), 1)
    sample = torch.arange(most, device=start.device, dtype=start.dtype)
    first = start[:, None] + torch.arange(bins, device=start.device, dtype=start.dtype) * width[:, None]
    inner = (sample + 0.5) * width[:, None] / count.clamp_min(1)[:, None]
    counted = (sample < count[:, None])[:, None, :].expand(-1, bins, -1)
    return first[:, :, None] + inner[:, None, :], counted, count


def _around(place: torch.Tensor, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the elements before and after places and their weights."""
    place = place.clamp_min(0)
    low = place.detach().floor().clamp_max(size - 1)
    part = torch.where(low >= size - 1, 0.0, place - low)
    high = (low + 1).clamp_max(size - 1)
    return [(low.to(torch.int64), 1 - part), (high.to(torch.int64), part)]


@recorded
def non_max_suppression(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    most: torch.Tensor | None,
    overlap: torch.Tensor | None,
    least: torch.Tensor | None,
    is_centered: bool,
) -> torch.Tensor:
    """Return the boxes that overlap no better one too much, as rows of image, class and box.

    Source: ONNX NonMaxSuppression-11.
    """
    count = 0 if most is None or not most.numel() else max(int(most), 0)
    limit = 0.0 if overlap is None or not overlap.numel() else float(overlap)
    found = []
    for image in range(scores.shape[0] if count else 0):
        suppresses = _intersection_over_union(boxes[image], is_centered) > limit
        for group in range(scores.shape[1]):
            score = scores[image, group]
            order = torch.sort(score, descending=True, stable=True).indices
            if least is not None and least.numel():
                order = order[score[order] > least.reshape(())]
            for box in _best(order, suppresses, count):
                found.append((image, group, box))
    return torch.tensor(found, dtype=torch.int64, device=boxes.device).reshape(-1, 3)


def _best(order: torch.Tensor, suppresses: torch.Tensor, most: int) -> list[int]:
    """Return the first boxes in an order that none before them suppresses."""
    chosen: list[int] = []
    while len(chosen) < most and order.numel():
        box = int(order[0])
        chosen.append(box)
        order = order[1:][~suppresses[box, order[1:]]]
    return chosen


def _intersection_over_union(boxes: torch.Tensor, is_centered: bool) -> torch.Tensor:
    """Return the shares of all pairs of boxes; 0 where one of them is empty."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if is_centered:
        first, second = first - second / 2, first + second / 2
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    extent = (torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)).clamp_min(0)
    common = extent.prod(-1)
    area = (high - low).prod(-1)
    union = area[:, None] + area - common
    return torch.where((common > 0) & (union > 0), common / union, 0.0)
