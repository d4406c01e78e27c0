"""Sequences of tensors that are made entry by entry."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import onnx.helper

from deep500.networks.differentiation.builder import GraphBuilder, Value

__all__ = ["map_sequence"]


def map_sequence(sequence: Value, element_type: int, make: Callable[[GraphBuilder, Value], Value]) -> Value:
    """Return the sequence of what is made of every number of an entry, by a loop.

    Args:
        sequence: The sequence that says how many there are.
        element_type: That of the tensors that are made.
        make: Gets the builder of the loop's body and the number; returns a tensor.
    """
    write = sequence.builder
    inner = write.child()
    names = [inner.fresh(base) for base in ("number", "goes_on", "entries")]
    write.types[names[0]] = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT64, [])
    longer = inner.op("SequenceInsert", inner.value(names[2]), make(inner, inner.value(names[0])))
    goes_on = inner.op("Identity", inner.value(names[1]))
    tensor = onnx.helper.make_tensor_type_proto(element_type, None)
    entries = onnx.helper.make_sequence_type_proto(tensor)
    flag = onnx.helper.make_tensor_type_proto(onnx.TensorProto.BOOL, [])
    kinds = {names[0]: write.types[names[0]], names[1]: flag, goes_on.name: flag}
    infos = [
        onnx.helper.make_value_info(name, kinds.get(name, entries)) for name in (*names, goes_on.name, longer.name)
    ]
    body = onnx.helper.make_graph(inner.nodes, "entries", infos[:3], infos[3:])
    start = write.op("SequenceEmpty", dtype=element_type)
    made = write.op("Loop", write.op("SequenceLength", sequence), write.constant(True), start, body=body)
    write.types[made.name] = entries
    return made
