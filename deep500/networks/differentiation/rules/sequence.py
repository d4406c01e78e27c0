"""Derivatives of sequences of tensors: the gradient by a sequence is a sequence of gradients."""

from __future__ import annotations

import onnx

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.sequences import map_sequence

__all__: list[str] = []


def _place(node: ReversedNode, index: int, sequence: Value) -> Value | None:
    """Return a position counted from the begin, ``None`` where it is left out."""
    write, given = node.builder, node.optional(index)
    if given is None:
        return None
    wide = write.op("Cast", given, to=onnx.TensorProto.INT64)
    return write.where(wide < 0, wide + write.op("SequenceLength", sequence), wide)


def _mapped(write: GraphBuilder, sequence: Value, kind: int, axis: int | None) -> Value:
    """Return a sequence of zeros of the shapes of the tensors, or of their sizes along an axis."""

    def made(inner: GraphBuilder, number: Value) -> Value:
        x = inner.op("SequenceAt", inner.value(sequence.name), number)
        return inner.zeros_like(x) if axis is None else inner.op("Gather", inner.op("Shape", x), inner.ints(axis))

    return map_sequence(sequence, onnx.TensorProto.INT64 if axis is not None else kind, made)


@reverse_rule("SequenceConstruct")
def sequence_construct(node: ReversedNode, g: Value) -> list[Value | None]:
    """Every tensor gets its entry. Source: ONNX SequenceConstruct-11."""
    write = node.builder
    return [
        write.same_type(write.op("SequenceAt", g, write.constant(i)), node.input(i)) if node.wants(i) else None
        for i in range(node.count)
    ]


@reverse_rule("SequenceAt")
def sequence_at(node: ReversedNode, g: Value) -> Value:
    """Zeros, but for the entry that was read. Source: ONNX SequenceAt-11."""
    write, sequence = node.builder, node.input()
    place = _place(node, 1, sequence)
    rest = write.op("SequenceErase", _mapped(write, sequence, g.element_type, None), place)
    return write.same_type(write.op("SequenceInsert", rest, g, place), sequence)


@reverse_rule("SequenceInsert")
def sequence_insert(node: ReversedNode, g: Value) -> list[Value | None]:
    """The tensor gets its entry, the sequence the others. Source: ONNX SequenceInsert-11."""
    write, sequence = node.builder, node.input(0)
    place = _place(node, 2, sequence)
    at = write.constant(-1) if place is None else place
    by_sequence = write.same_type(write.op("SequenceErase", g, at), sequence) if node.wants(0) else None
    by_tensor = write.same_type(write.op("SequenceAt", g, at), node.input(1)) if node.wants(1) else None
    return [by_sequence, by_tensor]


@reverse_rule("SequenceErase")
def sequence_erase(node: ReversedNode, g: Value) -> Value:
    """Zeros for the entry that was dropped. Source: ONNX SequenceErase-11."""
    write, sequence = node.builder, node.input()
    place = _place(node, 1, sequence)
    dropped = write.op("SequenceAt", sequence, write.constant(-1) if place is None else place)
    return write.same_type(write.op("SequenceInsert", g, write.zeros_like(dropped), place), sequence)


@reverse_rule("ConcatFromSequence")
def concat_from_sequence(node: ReversedNode, g: Value) -> Value:
    """Every tensor gets its part. Source: ONNX ConcatFromSequence-11."""
    write, sequence, axis = node.builder, node.input(), node.attributes["axis"]
    if node.get("new_axis", 0):
        made = write.op("SplitToSequence", g, axis=axis, keepdims=0)
    else:
        sizes = write.op("ConcatFromSequence", _mapped(write, sequence, g.element_type, axis), axis=0)
        made = write.op("SplitToSequence", g, sizes, axis=axis)
    return write.same_type(made, sequence)


@reverse_rule("SplitToSequence")
def split_to_sequence(node: ReversedNode, g: Value) -> Value:
    """The parts, joined. Source: ONNX SplitToSequence-24."""
    is_new = node.optional(1) is None and not node.get("keepdims", 1)
    write, axis = node.builder, node.get("axis", 0)
    return write.same_type(write.op("ConcatFromSequence", g, axis=axis, new_axis=int(is_new)), node.input())
