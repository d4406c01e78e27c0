"""Buffers that can be exchanged: one-dimensional, contiguous, writable host memory, seen in place and never copied."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from deep500.core.errors import CommunicationError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import one_line

__all__ = ["DTYPES", "HALF_DTYPES", "host_view", "is_accepted", "is_half"]

#: Element types that are sent and reduced.
DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)

#: Those that are reduced in float32, with one rounding at the end.
HALF_DTYPES = ("float16", "bfloat16")

_ACCEPTED = (
    "Accepted are NumPy arrays and framework tensors that are one-dimensional, contiguous, writable, detached and in "
    "the host's memory"
)
_HOST = 1  # kDLCPU
_CODES = {0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 5: "complex{}", 6: "bool"}  # DLDataTypeCode
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


def host_view(buffer: Any) -> npt.NDArray[Any]:
    """Return a buffer's memory as an array, without a copy.

    Args:
        buffer: A NumPy array, or another library's tensor that offers ``__dlpack__`` or ``__array_interface__``.

    Raises:
        CommunicationError: The buffer cannot be exchanged in place; the message says why and what to do.
    """
    array = buffer if isinstance(buffer, np.ndarray) else _foreign_view(buffer)
    flags = array.flags
    if array.ndim == 1 and flags.c_contiguous and flags.writeable and is_accepted(array.dtype):
        return array
    what = f"{_named(buffer)} of dtype {array.dtype.name} and shape {array.shape}"
    if not is_accepted(array.dtype):
        order = "" if array.dtype.isnative else " in foreign byte order"
        raise CommunicationError(
            f"Received {what}{order}. Accepted dtypes are {', '.join(DTYPES)}; convert it into one of these."
        )
    if array.ndim != 1:
        raise CommunicationError(f"Received {what}. {_ACCEPTED}; pass a flat view of it, reshape(-1).")
    if not flags.c_contiguous:
        raise CommunicationError(
            f"Received {what} that is not contiguous. {_ACCEPTED}; copy it into a contiguous buffer."
        )
    raise CommunicationError(f"Received {what} that is read-only. {_ACCEPTED}; copy it into a buffer of your own.")


@functools.lru_cache(maxsize=64)
def is_accepted(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of this dtype are exchanged; kept, since NumPy composes a dtype's name at each look."""
    return dtype.name in DTYPES and dtype.isnative


@functools.lru_cache(maxsize=64)
def is_half(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of this dtype are reduced in float32."""
    return dtype.name in HALF_DTYPES


def _foreign_view(buffer: Any) -> npt.NDArray[Any]:
    name = _named(buffer)
    if getattr(buffer, "requires_grad", False) is True:
        raise CommunicationError(
            f"Received {name} that requires a gradient. {_ACCEPTED}; exchange its .detach(), or its gradient."
        )
    if hasattr(buffer, "__dlpack__") and hasattr(buffer, "__dlpack_device__"):
        try:
            device = int(buffer.__dlpack_device__()[0])
            if device == _HOST:
                return _from_dlpack(buffer)
        except (BufferError, RuntimeError, ValueError, TypeError) as error:
            raise CommunicationError(
                f"Received {name} whose memory cannot be seen in place ({one_line(str(error))}). {_ACCEPTED}."
            ) from error
        raise CommunicationError(
            f"Received {name} on a device (DLPack's device type {device}). {_ACCEPTED}; copy it to the host, or "
            "choose a communicator whose capabilities.device_buffers is true."
        )
    if hasattr(buffer, "__array_interface__"):
        return np.asarray(buffer)
    raise CommunicationError(f"Received {name}. {_ACCEPTED}; make a NumPy array of it.")


def _named(buffer: Any) -> str:
    """Return what a buffer is, with its article."""
    name = type(buffer).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def _from_dlpack(tensor: Any) -> npt.NDArray[Any]:
    """Return a tensor's memory, also bfloat16 and tensors of the old protocol, which NumPy refuses or locks."""
    capsule = tensor.__dlpack__()
    read_only = False
    described: Any
    if _capsule_is(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        described, read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    else:
        described = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if described.code not in _CODES or described.lanes != 1:
        raise ValueError(f"its elements are of DLPack's type {described.code}, {described.lanes} lanes")
    dtype = numpy_dtype(_CODES[described.code].format(described.bits))
    shape = tuple(described.shape[axis] for axis in range(described.dimensions))
    steps = [described.strides[axis] for axis in range(described.dimensions)] if described.strides else None
    if steps is not None and any(step < 0 for step in steps):
        raise ValueError("it runs backwards")
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = None if steps is None else tuple(step * dtype.itemsize for step in steps)
    reach = sum((length - 1) * step for length, step in zip(shape, steps)) + 1 if steps else int(np.prod(shape))
    memory: Any = (ctypes.c_uint8 * (reach * dtype.itemsize)).from_address(described.data + described.byte_offset)
    memory._deep500_owner = (capsule, tensor)  # the memory lives as long as its view
    array: npt.NDArray[Any] = np.ndarray(shape, dtype, buffer=memory, strides=strides)
    if read_only:
        array.flags.writeable = False
    return array


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLPack's DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def _capsule_is(capsule: Any, name: bytes) -> bool:
    check = ctypes.pythonapi.PyCapsule_IsValid
    check.restype, check.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    return bool(check(capsule, name))


def _capsule_pointer(capsule: Any, name: bytes) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name))
