"""Tensors as NumPy arrays and back, without copies where the memory can be shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.frameworks.pytorch._dtypes import HELD_AS, dtype_name, holding_dtype

__all__ = ["as_texts", "element_type", "mark", "to_array", "to_tensor"]

#: Dtypes that cross to NumPy as integers of their size: PyTorch does not know the package that NumPy has them from.
_AS_INTEGERS = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
    torch.float8_e8m0fnu: torch.uint8,
}

#: Dtypes of arrays whose memory PyTorch shares as it is: those of most minibatches.
_SHARED = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))

#: Attribute of a tensor that says which element type of :data:`HELD_AS` it holds.
_MARK = "deep500_element_type"


def as_texts(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return texts of any length, or bytes of them, as an array of objects; ``None`` where these are no texts."""
    if array.dtype.kind not in "OUST":
        return None
    texts = np.empty(array.shape, object)
    texts[...] = array
    for index, text in np.ndenumerate(texts):
        if isinstance(text, bytes):
            texts[index] = text.decode()
    return texts


def mark(value: Any, name: str) -> Any:
    """Say of a tensor, or of all tensors of a list, that it holds an element type of :data:`HELD_AS`; return it."""
    if isinstance(value, (list, tuple)):
        return [mark(entry, name) for entry in value]
    if isinstance(value, torch.Tensor):
        setattr(value, _MARK, name)
    return value


def element_type(tensor: torch.Tensor) -> str:
    """Return the name of what a tensor holds: its dtype's, unless :func:`mark` said something else."""
    return getattr(tensor, _MARK, None) or dtype_name(tensor.dtype)


def to_array(tensor: torch.Tensor, name: str | None = None) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which shares the memory of one that lies on the processor.

    Args:
        tensor: The tensor.
        name: What it holds, by NumPy's name; where it is left out, :func:`element_type` tells.
    """
    name = name or element_type(tensor)
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.dtype in _AS_INTEGERS:
        integers: NDArray[Any] = plain.view(_AS_INTEGERS[plain.dtype]).numpy()
        return integers.view(numpy_dtype(dtype_name(plain.dtype)))
    array: NDArray[Any] = plain.numpy()
    if name not in HELD_AS:
        return array
    return array.view(numpy_dtype(name)) if name.startswith("float") else array.astype(numpy_dtype(name))


def to_tensor(value: Any) -> torch.Tensor:
    """Return a NumPy array as a tensor, which shares its memory unless nobody may write there.

    What PyTorch has no dtype of, it holds as :data:`HELD_AS` says.

    Raises:
        InvalidInputError: PyTorch can hold no such dtype.
    """
    array = np.asarray(value)
    if array.dtype in _SHARED and _can_be_shared(array):  # a shortcut: this is done for each minibatch
        return torch.from_numpy(array)
    dtype = holding_dtype(array.dtype.name)
    if array.dtype.name in HELD_AS:
        array = array.view(np.uint8) if array.dtype.name.startswith("float") else array.astype(dtype_name(dtype))
    if not array.dtype.isnative or not _can_be_shared(array):
        array = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
    if dtype in _AS_INTEGERS:
        integers = array.view(np.dtype(f"{'int' if array.itemsize > 1 else 'uint'}{8 * array.itemsize}"))
        return torch.from_numpy(integers).view(dtype)
    return torch.from_numpy(array)


def _can_be_shared(array: NDArray[Any]) -> bool:
    """Whether PyTorch takes the memory of an array: it may be written, and strides are whole elements forward."""
    size = array.itemsize
    return array.flags.writeable and not any(stride < 0 or stride % size for stride in array.strides)
