"""A snapshot as one JSON document and one safetensors file: nothing in it is code, and nothing is executed to read it.

Arrays go to the safetensors file under the path of their keys; the JSON document holds everything else, and in each
array's place an object with its name, dtype and shape. Dtypes that the safetensors format does not have are kept as
bytes, one for each byte of the elements in memory; the JSON document says which dtype they are of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError
from deep500.core.texts import shown

__all__ = ["decode", "encode"]

#: What safetensors calls the dtypes that it has, by NumPy's names.
_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}

_TENSOR, _FLOAT, _TEXTS, _ENTRIES = "$tensor", "$float", "$texts", "$entries"


def encode(state: Mapping[str, Any]) -> tuple[Any, bytes]:
    """Return a snapshot as what JSON takes, and the bytes of a safetensors file.

    Raises:
        CheckpointError: It holds something else than names, numbers, texts, lists and arrays.
    """
    tensors: dict[str, NDArray[Any]] = {}
    document = _encoded(state, (), tensors)
    return document, safetensors.numpy.save(tensors, {"format": "deep500"})


def decode(document: Any, tensors: bytes) -> Any:
    """Return the snapshot that :func:`encode` was given.

    Raises:
        CheckpointError: The two do not fit, or are damaged.
    """
    try:
        stored = dict(_deserialize(tensors))
        return _decoded(document, stored)
    except CheckpointError:
        raise
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"it cannot be read: {error}") from error


# It has no annotations.
_deserialize: Any = safetensors.deserialize


def _encoded(value: Any, path: tuple[str, ...], tensors: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return _encoded_array(np.asarray(value), path, tensors)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT: str(float(value))}
    if isinstance(value, (list, tuple)):
        return [_encoded(item, (*path, str(i)), tensors) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        encoded = {key: _encoded(item, (*path, key), tensors) for key, item in value.items()}
        # A dictionary that looks like one of ours is written as its entries.
        is_like_ours = any(key.startswith("$") for key in value)
        return {_ENTRIES: [list(entry) for entry in encoded.items()]} if is_like_ours else encoded
    raise CheckpointError(
        f"A checkpoint cannot hold {'/'.join(path) or 'the state'}, {shown(value)}; accepted are numbers, texts, None, "
        f"lists, dicts by text, and NumPy arrays."
    )


def _encoded_array(array: NDArray[Any], path: tuple[str, ...], tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    shape = list(array.shape)
    if array.dtype.kind in "OUST":
        texts = [str(text) for text in array.ravel()]
        return {_TEXTS: texts, "shape": shape}
    name = place = "/".join(path)
    number = 1
    while name in tensors:  # keys that have the separator in them
        number += 1
        name = f"{place}#{number}"
    dtype = array.dtype.name
    array = np.ascontiguousarray(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))
    if dtype not in _DTYPES:
        _dtype_of(dtype)  # that it can be read again is found out now
        array = np.frombuffer(array.tobytes(), np.uint8)
    else:
        array = array.reshape(shape)  # what has no dimension was given one
    tensors[name] = array
    return {_TENSOR: name, "dtype": dtype, "shape": shape}


def _decoded(value: Any, tensors: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if _ENTRIES in value:
        return {key: _decoded(item, tensors) for key, item in value[_ENTRIES]}
    if _FLOAT in value:
        return float(value[_FLOAT])
    if _TEXTS in value:
        return np.array(value[_TEXTS], object).reshape(value["shape"])
    if _TENSOR in value:
        return _decoded_array(value, tensors)
    return {key: _decoded(item, tensors) for key, item in value.items()}


def _decoded_array(entry: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Any]]) -> NDArray[Any]:
    name, dtype, shape = entry[_TENSOR], entry["dtype"], entry["shape"]
    if name not in tensors:
        raise CheckpointError(f"the tensor {shown(name)} is missing")
    stored = tensors[name]
    expected = _DTYPES.get(dtype, "U8")
    if stored["dtype"] != expected or (dtype in _DTYPES and list(stored["shape"]) != shape):
        raise CheckpointError(
            f"the tensor {shown(name)} is {stored['dtype']}{list(stored['shape'])}, not {expected}{shape}"
        )
    return np.frombuffer(bytearray(stored["data"]), _dtype_of(dtype)).reshape(shape)


def _dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of a name, NumPy's or one of ml_dtypes'."""
    if isinstance(name, str) and name.isidentifier():
        found = getattr(ml_dtypes, name, None)
        if isinstance(found, type):
            return np.dtype(found)
        try:
            dtype = np.dtype(name)
        except TypeError:
            pass
        else:
            if dtype.kind in "biufc":
                return dtype
    raise CheckpointError(f"A checkpoint cannot hold tensors of the dtype {shown(name)}.")
