"""Values of stored tensors as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown

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
    """Return an array as a tensor that a model can store.

    Raises:
        InvalidInputError: It holds objects that are no texts.
    """
    if value.dtype != object:
        return ir.tensor(value, name=name)
    for text in value.ravel():
        if not isinstance(text, str):
            raise InvalidInputError(f"The value given for {name!r} holds {shown(text)}; accepted are texts.")
    texts = np.array([text.encode() for text in value.ravel()], object).reshape(value.shape)
    return ir.StringTensor(texts, shape=ir.Shape(value.shape), name=name)
