"""Tensors as NumPy arrays and back, without copies where the memory can be shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.frameworks.pytorch._dtypes import torch_dtype

__all__ = ["to_array", "to_tensor"]

#: Dtypes that cross to NumPy as integers of their size: PyTorch does not know the package that NumPy has them from.
_AS_INTEGERS = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}


def to_array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which shares the memory of one that lies on the processor."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.dtype in _AS_INTEGERS:
        name = str(plain.dtype).removeprefix("torch.")
        integers: NDArray[Any] = plain.view(_AS_INTEGERS[plain.dtype]).numpy()
        return integers.view(numpy_dtype(name))
    array: NDArray[Any] = plain.numpy()
    return array


def to_tensor(value: Any) -> torch.Tensor:
    """Return a NumPy array as a tensor, which shares its memory unless nobody may write there.

    Raises:
        InvalidInputError: PyTorch has no such dtype.
    """
    array = np.asarray(value)
    dtype = torch_dtype(array.dtype.name)
    strides = array.strides
    if (
        not array.flags.writeable
        or not array.dtype.isnative
        or any(stride < 0 or stride % array.dtype.itemsize for stride in strides)
    ):
        array = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
    if dtype in _AS_INTEGERS:
        integers = array.view(np.dtype(f"{'int' if array.itemsize > 1 else 'uint'}{8 * array.itemsize}"))
        return torch.from_numpy(integers).view(dtype)
    return torch.from_numpy(array)
