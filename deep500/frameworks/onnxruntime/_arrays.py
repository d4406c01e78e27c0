"""NumPy's arrays as values of ONNX Runtime and back, for the element types that NumPy does not have."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx_ir as ir
import onnxruntime as ort
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import EXTENDED_DTYPES

__all__ = ["from_value", "is_extended", "is_extended_type", "to_value"]

#: What ONNX Runtime calls the types of tensors that NumPy has; sequences and the like are of other forms.
_ORDINARY = {
    f"tensor({name})"
    for name in (
        *("bool", "string", "float16", "float", "double", "complex64", "complex128"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
}


def is_extended(array: Any) -> bool:
    """Whether an array has an element type that NumPy does not have by itself."""
    return isinstance(array, np.ndarray) and array.dtype.name in EXTENDED_DTYPES


def is_extended_type(kind: str) -> bool:
    """Whether a type, as ONNX Runtime names it, is a tensor of such elements."""
    return kind.startswith("tensor(") and kind not in _ORDINARY


def to_value(array: NDArray[Any]) -> ort.OrtValue:
    """Return an array as a value of ONNX Runtime: of NumPy's own element types it shares the memory."""
    if not is_extended(array):
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    tensor = ir.tensor(array)
    value = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), tensor.dtype.value, "cpu", 0)
    content = tensor.tobytes()  # packed, where several elements share a byte
    ctypes.memmove(value.data_ptr(), content, len(content))
    return value


def from_value(value: ort.OrtValue) -> Any:
    """Return a tensor of ONNX Runtime as an array."""
    if not is_extended_type(value.data_type()):
        return value.numpy()
    size = value.tensor_size_in_bytes()
    proto = onnx.TensorProto(
        data_type=value.element_type(),
        dims=value.shape(),
        raw_data=ctypes.string_at(value.data_ptr(), size) if size else b"",
    )
    return onnx.numpy_helper.to_array(proto)
