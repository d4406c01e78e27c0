"""Values of stored tensors as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

__all__ = ["stored_tensor", "tensor_value"]


def tensor_value(tensor: ir.TensorProtocol) -> NDArray[Any]:
    """Return the value of a stored tensor; texts as an array of ``str`` objects, which ``onnx_ir`` gives as bytes."""
    value = np.asarray(tensor.numpy())
    if tensor.dtype != ir.DataType.STRING:
        return value
    texts = np.empty(value.shape, object)
    for index, text in np.ndenumerate(value):
        texts[index] = text.decode() if isinstance(text, bytes) else str(text)
    return texts


def stored_tensor(value: NDArray[Any], name: str) -> ir.TensorProtocol:
    """Return an array as a tensor that a model can store."""
    if value.dtype != object:
        return ir.tensor(value, name=name)
    texts = np.array([text.encode() for text in value.ravel()], object).reshape(value.shape)
    return ir.StringTensor(texts, shape=ir.Shape(value.shape), name=name)
