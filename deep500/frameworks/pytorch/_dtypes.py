"""Dtypes by NumPy's names."""

from __future__ import annotations

import torch

from deep500.core.errors import InvalidInputError

__all__ = ["dtype_name", "torch_dtype"]

_NAMES = {
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
}  # fmt: skip


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


def dtype_name(dtype: torch.dtype) -> str:
    """Return NumPy's name of PyTorch's dtype."""
    return str(dtype).removeprefix("torch.")
