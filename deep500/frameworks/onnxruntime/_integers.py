"""Integer divisions that end a process on some processors, guarded: by zero, and of the least number by -1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference

__all__ = ["without_traps"]

_DIVISIONS = ("Div", "Mod")
_INT64 = onnx.TensorProto.INT64

#: Integers by number of their type; whether they are signed.
_INTEGERS: dict[int, bool] = {
    **dict.fromkeys((onnx.TensorProto.INT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, _INT64), True),
    **dict.fromkeys(
        (onnx.TensorProto.UINT8, onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64), False
    ),
}


def without_traps(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose integer divisions do not trap; the model itself where there is none that may.

    A quotient by zero and a remainder of it are 0; the least number divided by -1 is itself, as in two's complement.

    Args:
        model: The model; it is not changed.
    """
    if not _holds_division(model.graph):
        return model
    guarded = onnx.ModelProto()
    guarded.CopyFrom(model)
    try:
        inferred = onnx.shape_inference.infer_shapes(guarded)
    except Exception:  # noqa: BLE001 - the runtime says better what it does not accept
        return model
    types: dict[str, int] = {}
    constants: dict[str, onnx.TensorProto] = {}
    _collect(inferred.graph, types, constants)
    _guard(guarded.graph, types, constants)
    return guarded


def _graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def _holds_division(graph: onnx.GraphProto) -> bool:
    return any(
        node.op_type in _DIVISIONS or any(_holds_division(inner) for inner in _graphs(node)) for node in graph.node
    )


def _collect(graph: onnx.GraphProto, types: dict[str, int], constants: dict[str, onnx.TensorProto]) -> None:
    for value in (*graph.input, *graph.value_info, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        types[tensor.name] = tensor.data_type
        constants[tensor.name] = tensor
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
        for inner in _graphs(node):
            _collect(inner, types, constants)


def _guard(graph: onnx.GraphProto, types: Mapping[str, int], constants: Mapping[str, onnx.TensorProto]) -> None:
    nodes = []
    for node in graph.node:
        for inner in _graphs(node):
            _guard(inner, types, constants)
        kind = types.get(node.input[1], 0) if node.op_type in _DIVISIONS and not node.domain else 0
        if kind in _INTEGERS and not _is_safe(constants.get(node.input[1])):
            nodes += _guarded(node, kind)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _is_safe(divisor: onnx.TensorProto | None) -> bool:
    """Whether a divisor is known and neither 0 nor -1."""
    if divisor is None:
        return False
    values = onnx.numpy_helper.to_array(divisor)
    return not (values == 0).any() and (values.dtype.kind == "u" or not (values == -1).any())


def _guarded(node: onnx.NodeProto, kind: int) -> list[onnx.NodeProto]:
    """Divide by 1 what is to be divided by 0 or -1, after it was set to 0 or negated."""
    a, b = node.input
    prefix = f"{node.output[0]}.guarded"
    made: list[onnx.NodeProto] = []

    def add(operator: str, *inputs: str, to: int | None = None) -> str:
        name = f"{prefix}.{len(made)}"
        node = onnx.helper.make_node(operator, list(inputs), [name], name=name)
        if to is not None:
            node.attribute.append(onnx.helper.make_attribute("to", to))
        made.append(node)
        return name

    def number(value: int) -> str:
        name = f"{prefix}.{len(made)}"
        tensor = onnx.numpy_helper.from_array(np.array(value, np.int64))
        made.append(onnx.helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    # In 64 bits, which the runtime's comparisons know; the conversion there and back changes nothing.
    wide_a, wide_b = (add("Cast", name, to=_INT64) for name in (a, b))
    one, zero = number(1), number(0)
    is_zero = add("Equal", wide_b, zero)
    unsafe = is_zero
    dividend = wide_a
    if _INTEGERS[kind]:
        is_minus = add("Equal", wide_b, number(-1))
        unsafe = add("Or", is_zero, is_minus)
        dividend = add("Where", is_minus, add("Neg", wide_a), wide_a)
    dividend = add("Where", is_zero, zero, dividend)
    divisor = add("Where", unsafe, one, wide_b)
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [add("Cast", dividend, to=kind), add("Cast", divisor, to=kind)]
    return [*made, copy]
