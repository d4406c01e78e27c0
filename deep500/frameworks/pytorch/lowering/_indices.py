"""Reading and writing elements by index; negative indices count from the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from deep500.frameworks.pytorch._recording import recorded, recorded_view
from deep500.frameworks.pytorch._sizes import as_integers
from deep500.frameworks.pytorch.lowering._integers import narrowed, unordered, wider
from deep500.frameworks.pytorch.lowering._plain import moving, taken, widened

__all__ = [
    "compress",
    "gather",
    "gather_elements",
    "gather_nd",
    "nonzero",
    "one_hot",
    "scatter_elements",
    "scatter_nd",
    "select",
    "tensor_scatter",
    "top_k",
    "unique",
]

#: PyTorch's names of ONNX' reductions of elements that meet at one place.
_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _from_start(index: torch.Tensor, size: int) -> torch.Tensor:
    """Return indices of 64 bits that count from the start."""
    index = index.to(torch.int64)
    return torch.where(index < 0, index + size, index)


@recorded_view
def select(x: torch.Tensor, index: int, axis: int) -> torch.Tensor:
    """Return one entry of an axis, without the axis."""
    return x.select(axis, index)


@recorded
def gather(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the entries of an axis that indices of any shape name; the axis becomes theirs."""
    axis = axis % x.dim()
    index = _from_start(index, x.shape[axis])
    found = taken(x, index.reshape(-1), axis)
    return found if index.dim() == 1 else found.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@recorded
def gather_elements(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """Return for every index the element that it names on an axis, at its own place on the others."""
    return _take_along(x, _from_start(index, x.shape[axis]), axis)


@moving
def _take_along(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.gather(x, axis, index)


@recorded
def gather_nd(x: torch.Tensor, index: torch.Tensor, batch_axes: int) -> torch.Tensor:
    """Return the parts that rows of indices name, behind so many axes which both have."""
    depth = index.shape[-1]
    named, rest = x.shape[batch_axes : batch_axes + depth], x.shape[batch_axes + depth :]
    count = math.prod(x.shape[:batch_axes])
    rows = index.reshape(count, math.prod(index.shape[batch_axes:-1]), depth)
    places = _row_numbers(rows, named)
    offset = torch.arange(count, device=x.device).unsqueeze(1) * math.prod(named)
    table = x.reshape(count * math.prod(named), *rest)
    return taken(table, (places + offset).reshape(-1), 0).reshape([*index.shape[:-1], *rest])


def _row_numbers(rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return the number, in a table that has a row for every place, of the place that each row of indices names.

    PyTorch's kernels refuse rows that the table does not have, but not indices whose sum falls back into it.
    """
    numbers = torch.zeros(rows.shape[:-1], dtype=torch.int64, device=rows.device)
    for axis, size in enumerate(sizes):
        index = _from_start(rows[..., axis], size)
        inside = (index >= 0) & (index < size)
        numbers = torch.where(inside & (numbers >= 0), numbers * size + index, -math.prod(sizes) - 1)
    return numbers


@recorded
def scatter_elements(
    x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor, axis: int, reduction: str
) -> torch.Tensor:
    """Return a tensor with elements written at places along an axis."""
    index = _from_start(index, x.shape[axis])
    if reduction == "none":
        return _put_along(x, updates, index, axis)
    return _reduced_along(x, index, updates, axis, reduction)


@moving
def _put_along(x: torch.Tensor, updates: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.scatter(x, axis, index, updates)


def _reduced_along(
    x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor, axis: int, reduction: str
) -> torch.Tensor:
    kind = _REDUCTIONS[reduction]
    if x.dtype == torch.bool:
        # Sums of truth values are "or", products "and", and so are their extremes.
        kind = {"sum": "amax", "prod": "amin"}.get(kind, kind)
    if reduction in ("add", "mul") and not x.dtype.is_floating_point and x.dtype != torch.bool:
        return narrowed(torch.scatter_reduce(wider(x), axis, index, wider(updates), kind), x.dtype)
    return unordered(torch.scatter_reduce(widened(x), axis, index, widened(updates), kind), x.dtype)


@recorded
def scatter_nd(x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor, reduction: str) -> torch.Tensor:
    """Return a tensor with parts written where rows of indices say."""
    depth = index.shape[-1]
    named, rest = x.shape[:depth], x.shape[depth:]
    width = math.prod(rest)
    table = x.reshape(math.prod(named), width)
    places = _row_numbers(index, named).reshape(-1)
    written = updates.reshape(places.shape[0], width)
    if reduction == "none":
        return _put_rows(table, written, places).reshape(x.shape)
    places = places.unsqueeze(1).expand(-1, width)
    return _reduced_along(table, places, written, 0, reduction).reshape(x.shape)


@moving
def _put_rows(table: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return torch.index_copy(table, 0, places, rows)


@recorded
def tensor_scatter(
    cache: torch.Tensor, update: torch.Tensor, first: torch.Tensor | None, axis: int, mode: str
) -> torch.Tensor:
    """Return a cache with new steps written from a place on that each sequence has of its own."""
    axis = axis % cache.dim()
    steps = torch.arange(update.shape[axis], device=cache.device).reshape([-1] + [1] * (cache.dim() - axis - 1))
    starts = first.to(torch.int64) if first is not None else steps.new_zeros(cache.shape[0])
    places = starts.reshape([-1] + [1] * (cache.dim() - 1)) + steps
    if mode == "circular":
        places = places % cache.shape[axis]
    return _put_along(cache, update, places.expand(update.shape), axis)


@recorded
def top_k(x: torch.Tensor, count: Any, axis: int, largest: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest or smallest elements along an axis and where they are, the first of equal ones first.

    PyTorch's own topk leaves open which of equal elements it takes.
    """
    (number,) = as_integers(count)
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    places = torch.sort(widened(x), dim=axis, descending=largest, stable=True).indices.narrow(axis, 0, number)
    return _take_along(x, places, axis), places


@recorded
def nonzero(x: torch.Tensor) -> torch.Tensor:
    """Return the places of all elements that are not zero, one a column."""
    return torch.nonzero(widened(x) != widened(torch.zeros_like(x))).t().contiguous()


@recorded
def one_hot(index: torch.Tensor, depth: Any, values: torch.Tensor, axis: int) -> torch.Tensor:
    """Return one value where an index names the place on a new axis, and another elsewhere."""
    (size,) = as_integers(depth)
    axis = axis + index.dim() + 1 if axis < 0 else axis
    places = torch.arange(size, device=index.device).reshape([-1] + [1] * (index.dim() - axis))
    named = _from_start(index, size).unsqueeze(axis) == places
    return torch.where(named, values[1], values[0])


@recorded
def compress(x: torch.Tensor, condition: torch.Tensor, axis: int | None) -> torch.Tensor:
    """Return the entries of an axis for which a condition holds; without an axis, of the flattened tensor."""
    places = torch.nonzero(condition).reshape(-1)
    return taken(x.reshape(-1), places, 0) if axis is None else taken(x, places, axis)


@recorded
def unique(x: torch.Tensor, axis: int | None, is_sorted: bool) -> tuple[torch.Tensor, ...]:
    """Return every element or part once, where it occurs first, where it is for each of the tensor's, and how often."""
    wide = widened(x.reshape(-1) if axis is None else x)
    _, inverse, counts = torch.unique(wide, sorted=True, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    total, number = inverse.numel(), counts.numel()
    places = torch.arange(total, device=x.device)
    first = places.new_full((number,), total).scatter_reduce(0, inverse, places, "amin")
    if not is_sorted:
        order = torch.argsort(first)
        first, counts = first[order], counts[order]
        inverse = torch.empty_like(order).scatter(0, order, torch.arange(number, device=x.device))[inverse]
    source = x.reshape(-1) if axis is None else x
    return taken(source, first, axis or 0), first, inverse, counts
