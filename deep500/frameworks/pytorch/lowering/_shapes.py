"""Arrangements whose parameters are known only when a graph runs.

Parameters are numbers and sizes, or tensors of integers (see :func:`deep500.frameworks.pytorch._sizes.integers_of`).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from deep500.frameworks.pytorch._recording import recorded, recorded_view
from deep500.frameworks.pytorch._sizes import as_integers
from deep500.frameworks.pytorch.lowering._plain import device_of, moving

__all__ = [
    "bounded_slice",
    "element_count",
    "expand",
    "flatten",
    "reshape",
    "reverse_sequence",
    "shape",
    "slice_axes",
    "split",
    "split_evenly",
    "squeeze",
    "tile",
    "triangle",
    "unsqueeze",
]


@recorded
def shape(x: Any, start: int, end: int | None) -> torch.Tensor:
    """Return sizes as a tensor, beside the one that has them."""
    return torch.tensor(list(x.shape[start:end]), dtype=torch.int64, device=device_of(x))


@recorded
def element_count(x: Any) -> torch.Tensor:
    """Return the number of elements as a tensor."""
    return torch.tensor(math.prod(x.shape), dtype=torch.int64, device=device_of(x))


@recorded_view
def flatten(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Return a matrix whose rows are the axes before one."""
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@recorded_view
def reshape(x: torch.Tensor, sizes: Any, keep: bool) -> torch.Tensor:
    """Return the elements in a shape; the size that takes what is left is told for empty tensors, too."""
    wanted = as_integers(sizes)
    known = [x.shape[axis] if size == 0 and keep else size for axis, size in enumerate(wanted)]
    if x.numel() == 0 and -1 in wanted:
        kept = [axis for axis, size in enumerate(wanted) if size == 0 and keep]
        left = math.prod(n for axis, n in enumerate(x.shape) if axis not in kept)
        given = math.prod(size for size in wanted if size > 0)
        known[wanted.index(-1)] = left // given
    return x.reshape(known)


@recorded_view
def squeeze(x: torch.Tensor, axes: Any) -> torch.Tensor:
    """Return a tensor without axes, which must be of size 1."""
    dropped = {axis % x.dim() for axis in as_integers(axes)} if x.dim() else set()
    return x.reshape([size for axis, size in enumerate(x.shape) if axis not in dropped])


@recorded_view
def unsqueeze(x: torch.Tensor, axes: Any) -> torch.Tensor:
    """Return a tensor with more axes, of size 1."""
    names = as_integers(axes)
    for axis in sorted(axis % (x.dim() + len(names)) for axis in names):
        x = x.unsqueeze(axis)
    return x


@recorded_view
def expand(x: torch.Tensor, sizes: Any) -> torch.Tensor:
    """Return a tensor broadcast with a shape."""
    wanted = as_integers(sizes)
    own = [1] * (len(wanted) - x.dim()) + list(x.shape)
    wanted = [1] * (len(own) - len(wanted)) + wanted
    return x.expand([mine if size == 1 else size for mine, size in zip(own, wanted)])


@recorded
def tile(x: torch.Tensor, counts: Any) -> torch.Tensor:
    """Return a tensor repeated along every axis."""
    return torch.tile(x, as_integers(counts))


def bounded_slice(start: Any, end: Any, step: Any) -> slice:
    """Return a slice; ONNX' bounds may be the limits of int64, which PyTorch warns of or computes strides with."""
    first, last = (max(bound, -(2**62)) if isinstance(bound, int) else bound for bound in (start, end))
    return slice(first, last, min(step, 2**31))


@recorded_view
def slice_axes(x: torch.Tensor, starts: Any, ends: Any, axes: Any, steps: Any) -> torch.Tensor:
    """Return a slice; PyTorch's steps are positive, so negative ones are taken the other way round and flipped."""
    first, last = as_integers(starts), as_integers(ends)
    names = list(range(len(first))) if axes is None else [axis % x.dim() for axis in as_integers(axes)]
    strides = [1] * len(first) if steps is None else as_integers(steps)
    parts, flipped = [slice(None)] * x.dim(), []
    for axis, start, end, step in zip(names, first, last, strides, strict=True):
        if step > 0:
            parts[axis] = bounded_slice(start, end, step)
            continue
        taken = _backwards(start, end, step, x.shape[axis])
        parts[axis] = slice(taken[-1], taken[0] + 1, -step) if taken else slice(0, 0)
        flipped.append(axis)
    part = x[tuple(parts)]
    return _flipped(part, flipped) if flipped else part


def _backwards(start: int, end: int, step: int, size: int) -> range:
    """Return what a negative step visits: a start before the axis is its first entry, where Python would visit none."""
    start, end = (limit + size if limit < 0 else limit for limit in (start, end))
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


@moving
def _flipped(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
    return x.flip(axes)


@recorded_view
def split(x: torch.Tensor, sizes: Any, axis: int) -> tuple[torch.Tensor, ...]:
    """Return parts of given sizes."""
    return torch.split(x, as_integers(sizes), axis)


@recorded_view
def split_evenly(x: torch.Tensor, count: int, axis: int) -> tuple[torch.Tensor, ...]:
    """Return so many parts of one size, of which the last ones may be smaller."""
    total = x.shape[axis]
    size = -(-total // count)
    sizes = [max(0, min(size, total - index * size)) for index in range(count)]
    return torch.split(x, sizes, axis)


@recorded
def triangle(x: torch.Tensor, diagonal: Any, upper: bool) -> torch.Tensor:
    """Return triangles of matrices."""
    (offset,) = as_integers(diagonal)
    return _triangle(x, offset, upper)


@moving
def _triangle(x: torch.Tensor, offset: int, upper: bool) -> torch.Tensor:
    return torch.triu(x, offset) if upper else torch.tril(x, offset)


@recorded
def reverse_sequence(x: torch.Tensor, lengths: torch.Tensor, time_axis: int, batch_axis: int) -> torch.Tensor:
    """Return sequences whose first steps are reversed."""
    time = torch.arange(x.shape[time_axis], device=x.device).unsqueeze(1)
    last = lengths.to(torch.int64).unsqueeze(0)
    positions = torch.where(time < last, last - 1 - time, time)
    batch = torch.arange(x.shape[batch_axis], device=x.device).unsqueeze(0)
    rows = x.movedim((time_axis, batch_axis), (0, 1))
    return rows[positions, batch].movedim((0, 1), (time_axis, batch_axis))
