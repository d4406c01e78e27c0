"""Moving elements whose dtype PyTorch stores and has few kernels for: they travel as integers of their size."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from deep500.frameworks.pytorch.lowering._integers import ordered

__all__ = ["device_of", "moving", "taken", "widened"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_STAND_INS = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _stand_in(dtype: torch.dtype) -> torch.dtype | None:
    return torch.uint8 if str(dtype).startswith("torch.float8") else _STAND_INS.get(dtype)


def moving(function: _Function) -> _Function:
    """Make a function of tensors that only moves their elements one for all dtypes.

    Its result, a tensor or several, has the dtype of the first argument; tensors of the same dtype among the other
    arguments are elements, too.
    """

    @functools.wraps(function)
    def call(x: torch.Tensor, *arguments: Any) -> Any:
        kind = _stand_in(x.dtype)
        if kind is None:
            return function(x, *arguments)
        dtype = x.dtype
        others = [a.view(kind) if isinstance(a, torch.Tensor) and a.dtype == dtype else a for a in arguments]
        result = function(x.view(kind), *others)
        if isinstance(result, torch.Tensor):
            return result.view(dtype)
        return type(result)(part.view(dtype) for part in result)

    return call  # type: ignore[return-value]


@moving
def taken(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the entries of an axis that a vector of indices names."""
    return x.index_select(axis, index)


def widened(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a dtype that has kernels, whose elements compare as those of the given one."""
    if x.dtype == torch.bool:
        return x.to(torch.uint8)
    return x.to(torch.float32) if str(x.dtype).startswith("torch.float8") else ordered(x)


def device_of(*values: Any) -> torch.device:
    """Return the device of the first tensor among values and lists of them; the processor where there is none."""
    for value in values:
        if isinstance(value, torch.Tensor):
            return value.device
        if isinstance(value, (list, tuple)) and value:
            return device_of(*value)
    return torch.device("cpu")
