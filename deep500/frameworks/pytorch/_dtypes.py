"""Dtypes by NumPy's names."""

from __future__ import annotations

import torch

from deep500.core.errors import InvalidInputError

__all__ = ["HELD_AS", "dtype_name", "holding_dtype", "torch_dtype"]

_NAMES = {
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
}  # fmt: skip

#: Element types of fewer than 8 bits, of which PyTorch has no tensors that it computes with, by the dtype that holds
#: them: integers as their values, floats as their bits.
HELD_AS = {
    "int2": torch.int8,
    "int4": torch.int8,
    "uint2": torch.uint8,
    "uint4": torch.uint8,
    "float4_e2m1fn": torch.uint8,
}


def torch_dtype(name: str) -> torch.dtype:
    """Return PyTorch's dtype of NumPy's name.

    Raises:
        InvalidInputError: PyTorch has none.
    """
    if name not in _NAMES:
        raise InvalidInputError(f"PyTorch has no dtype {name!r}. It has: {', '.join(sorted(_NAMES))}.")
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def holding_dtype(name: str) -> torch.dtype:
    """Return the dtype of the tensors that hold an element type: PyTorch's own, or one of :data:`HELD_AS`.

    Raises:
        InvalidInputError: There is none.
    """
    return HELD_AS[name] if name in HELD_AS else torch_dtype(name)


def dtype_name(dtype: torch.dtype) -> str:
    """Return NumPy's name of PyTorch's dtype."""
    return str(dtype).removeprefix("torch.")
