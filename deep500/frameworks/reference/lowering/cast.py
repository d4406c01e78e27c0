"""Conversions between dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from deep500.frameworks.reference.lowering import lowerings
from deep500.frameworks.reference.lowering._library import LIBRARY
from deep500.frameworks.reference.lowering._onnx_reference import OnnxReference, take_onnx
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator, OptionalArray

__all__: list[str] = []

#: Element types that the library converts from and to; ONNX' implementation knows texts and the narrow ones, too.
_KNOWN = (
    "float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64",
)  # fmt: skip


class _Cast(Operator):
    """The library's conversion where it knows both dtypes, else that of ONNX' reference implementation."""

    def __init__(self, node: OperatorNode) -> None:
        to = int(node.attributes["to"])
        known = to != onnx.TensorProto.STRING and onnx.helper.tensor_dtype_to_np_dtype(to).name in _KNOWN
        self._library: Operator | None = LIBRARY.get("cast")(**node.attributes) if known else None
        self._other = OnnxReference(node)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        return self._chosen(inputs).forward(inputs)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        return self._chosen(fwd_inputs).backward(grads, fwd_inputs, fwd_outputs)

    def _chosen(self, inputs: Sequence[OptionalArray]) -> Operator:
        x = inputs[0]
        is_known = self._library is not None and x is not None and np.asarray(x).dtype.name in _KNOWN
        return self._library if is_known and self._library is not None else self._other


class _CastLike(Operator):
    """A conversion to the dtype of the second input, which may be known only when it is there."""

    def __init__(self, node: OperatorNode) -> None:
        self._settings = {"saturate": node.attributes.get("saturate", 1)}
        self._other = OnnxReference(node)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        library = self._library(inputs)
        return self._other.forward(inputs) if library is None else library.forward(inputs[:1])

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        library = self._library(fwd_inputs)
        return (None, None) if library is None else (*library.backward(grads, fwd_inputs[:1], fwd_outputs), None)

    def _library(self, inputs: Sequence[OptionalArray]) -> Operator | None:
        """Return the library's conversion, ``None`` where it does not know one of the dtypes."""
        x, like = (np.asarray(value) for value in inputs)
        if not {x.dtype.name, like.dtype.name} <= set(_KNOWN):
            return None
        cast: Operator = LIBRARY.get("cast")(to=onnx.helper.np_dtype_to_tensor_dtype(like.dtype), **self._settings)
        return cast


@lowerings.register("CastLike", since=15)
def cast_like(node: OperatorNode) -> Operator:
    """Source: ONNX CastLike-25."""
    return _CastLike(node)


@lowerings.register("Cast", since=9)
def cast(node: OperatorNode) -> Operator:
    """Source: ONNX Cast-28."""
    return _Cast(node)


take_onnx("BitCast", since=26)
