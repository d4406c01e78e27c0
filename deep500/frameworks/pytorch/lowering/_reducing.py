"""What reductions compute, by name, for every dtype and for no elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from deep500.frameworks.pytorch.lowering._integers import (
    is_signed,
    narrowed,
    ordered,
    truncated_quotient,
    unordered,
    wider,
)

__all__ = ["DIRECT", "reduce"]


def _sum(x: Any, axes: list[int], keepdims: bool) -> Any:
    return torch.sum(x, axes, keepdim=keepdims) if axes else torch.clone(x)


def _mean(x: Any, axes: list[int], keepdims: bool) -> Any:
    return torch.mean(x, axes, keepdim=keepdims) if axes else torch.clone(x)


def _l1(x: Any, axes: list[int], keepdims: bool) -> Any:
    return _sum(torch.abs(x), axes, keepdims)


def _l2(x: Any, axes: list[int], keepdims: bool) -> Any:
    return torch.linalg.vector_norm(x, 2, axes, keepdim=keepdims) if axes else torch.abs(x)


def _log_sum(x: Any, axes: list[int], keepdims: bool) -> Any:
    return torch.log(_sum(x, axes, keepdims))


def _log_sum_exp(x: Any, axes: list[int], keepdims: bool) -> Any:
    return torch.logsumexp(x, axes, keepdim=keepdims) if axes else torch.clone(x)


def _sum_square(x: Any, axes: list[int], keepdims: bool) -> Any:
    return _sum(torch.square(x), axes, keepdims)


#: Reductions of floats that PyTorch has itself, for tensors and for proxies. The others have to look at shapes.
DIRECT: dict[str, Callable[[Any, list[int], bool], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "l1": _l1,
    "l2": _l2,
    "log_sum": _log_sum,
    "log_sum_exp": _log_sum_exp,
    "sum_square": _sum_square,
}


def reduce(name: str, x: torch.Tensor, axes: list[int], keepdims: bool) -> torch.Tensor:
    """Reduce a tensor, in its own dtype.

    Args:
        name: ``"max"``, ``"min"``, ``"prod"``, or one of :data:`DIRECT`.
        x: The tensor; integers and, for ``"max"`` and ``"min"``, truth values are reduced too.
        axes: The axes, perhaps none.
        keepdims: Whether the axes stay, with size 1.
    """
    if not axes or not x.dim():
        axes = []
    if name in ("max", "min"):
        return _extreme(x, axes, keepdims, name == "max")
    if name == "prod":
        return _product(x, axes, keepdims)
    if x.dtype.is_floating_point:
        result: torch.Tensor = DIRECT[name](x, axes, keepdims)
        return result
    return _of_integers(name, x, axes, keepdims)


def _of_integers(name: str, x: torch.Tensor, axes: list[int], keepdims: bool) -> torch.Tensor:
    wide = wider(x)
    if name == "sum":
        return narrowed(_sum(wide, axes, keepdims), x.dtype)
    if name == "sum_square":
        return narrowed(_sum(wide * wide, axes, keepdims), x.dtype)
    if name == "l1":
        return narrowed(_sum(wide.abs() if is_signed(x.dtype) else wide, axes, keepdims), x.dtype)
    if name == "mean":
        total = _sum(wide, axes, keepdims).to(torch.int64)
        count = _sum(torch.ones_like(wide), axes, keepdims).to(torch.int64)
        if x.dtype == torch.uint64:
            return truncated_quotient(total.view(x.dtype), count.view(x.dtype))
        return narrowed(truncated_quotient(total, count), x.dtype)
    # Roots and logarithms: computed in float64, and truncated.
    exact: torch.Tensor = DIRECT[name](x.to(torch.float64), axes, keepdims)
    return exact.to(x.dtype)


def _product(x: torch.Tensor, axes: list[int], keepdims: bool) -> torch.Tensor:
    result = wider(x)
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        result = torch.prod(result, axis, keepdim=keepdims)
    return result.to(x.dtype) if x.dtype.is_floating_point and axes else narrowed(result, x.dtype).clone()


def _extreme(x: torch.Tensor, axes: list[int], keepdims: bool, is_max: bool) -> torch.Tensor:
    if not axes:
        return x.clone()
    reduced = {axis % x.dim() for axis in axes}
    if all(x.size(axis) for axis in reduced):
        values = (torch.amax if is_max else torch.amin)(ordered(x), list(reduced), keepdim=keepdims)
        return values if x.dtype == torch.bool or x.dtype.is_floating_point else unordered(values, x.dtype)
    # Over no elements: what every other element would replace.
    kept = [1 if axis in reduced else size for axis, size in enumerate(x.shape) if keepdims or axis not in reduced]
    return torch.full(kept, _neutral(x.dtype, is_max), dtype=x.dtype, device=x.device)


def _neutral(dtype: torch.dtype, is_max: bool) -> Any:
    if dtype == torch.bool:
        return not is_max
    if dtype.is_floating_point:
        return float("-inf") if is_max else float("inf")
    return torch.iinfo(dtype).min if is_max else torch.iinfo(dtype).max
