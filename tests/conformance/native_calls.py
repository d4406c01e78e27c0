"""Calls of a compiled operator's functions without an adapter, with tensors that claim to lie on any device."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.operators.native.binding import ATTRIBUTE_KINDS
from deep500.operators.native.library import NativeLibrary

CPU, CUDA = 1, 2

#: DLPack's codes of kinds of dtypes.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class Tensor(ctypes.Structure):
    """The header's ``d5_tensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Attribute(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
        ("string", ctypes.c_char_p),
    )


class Call(ctypes.Structure):
    """The header's ``d5_call``."""

    _fields_ = (
        ("abi_version", ctypes.c_int32),
        ("device_type", ctypes.c_int32),
        ("input_count", ctypes.c_int32),
        ("output_count", ctypes.c_int32),
        ("attribute_count", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("inputs", ctypes.POINTER(Tensor)),
        ("outputs", ctypes.POINTER(Tensor)),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("stream", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("error_size_bytes", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Answer:
    """What a function returned: its status, 0 for success, and its message."""

    status: int
    message: str


#: Elements beside an output that nothing may be written to, and what is in them.
_MARGIN, _FILL = 64, 7


def room_for(arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """Return memory for outputs like these arrays, which lies between margins."""
    found: list[np.ndarray | None] = []
    for array in arrays:
        whole = None if array is None else np.full(array.size + 2 * _MARGIN, _FILL, array.dtype)
        found.append(None if whole is None else whole[_MARGIN : whole.size - _MARGIN].reshape(array.shape))
    return found


def check_margins(outputs: Sequence[np.ndarray | None]) -> None:
    """Check that nothing was written beside memory that :func:`room_for` returned."""
    for output in outputs:
        if output is not None:
            whole = output
            while whole.base is not None:
                whole = whole.base
            assert (whole[:_MARGIN] == _FILL).all()
            assert (whole[whole.size - _MARGIN :] == _FILL).all()


def call(
    library: NativeLibrary,
    which: Any,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any],
    device: int = CPU,
) -> Answer:
    """Call a function of the border; it writes the outputs, which are row-major without gaps, as the inputs are."""
    error = ctypes.create_string_buffer(2048)
    kinds = library.description.attributes
    read, written = _tensors(inputs, device), _tensors(outputs, device)
    listed = (_Attribute * max(len(attributes), 1))(*(_attribute(k, kinds[k], v) for k, v in attributes.items()))
    made = Call(
        1, device, len(inputs), len(outputs), len(attributes), 0, read, written, listed, None,
        ctypes.addressof(error), len(error),
    )  # fmt: skip
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library.symbol(which))
    return Answer(function(ctypes.addressof(made)), error.value.decode())


def _tensors(arrays: Sequence[np.ndarray | None], device: int) -> Any:
    return (Tensor * max(len(arrays), 1))(*(_tensor(array, device) for array in arrays))


def _tensor(array: np.ndarray | None, device: int) -> Tensor:
    if array is None:
        return Tensor(None, (device, 0), -1, (0, 0, 1, 0), None, None, 0)
    assert array.flags.c_contiguous
    code = 4 if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    bits = 8 * array.dtype.itemsize
    return Tensor(array.ctypes.data, (device, 0), array.ndim, (code, bits, 1, 0), shape, None, 0)


def _attribute(name: str, kind: str, value: Any) -> _Attribute:
    values = value if isinstance(value, tuple) else (value,)
    is_text = kind == "string"
    ints = (ctypes.c_int64 * max(len(values), 1))(*(values if kind.startswith("int") else ()))
    floats = (ctypes.c_double * max(len(values), 1))(*(values if kind.startswith("float") else ()))
    text = value.encode() if is_text else b""
    return _Attribute(name.encode(), ATTRIBUTE_KINDS[kind], len(text) if is_text else len(values), ints, floats, text)
