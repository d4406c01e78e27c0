"""Derivatives of Fourier transforms."""

from __future__ import annotations

import onnx

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import defined_by_others, reverse_rule

__all__: list[str] = []


@reverse_rule("DFT", since=20)
def dft(node: ReversedNode, g: Value) -> Value:
    """The conjugate transform, which is the inverse one without its ``1 / n``. Source: ONNX DFT-20."""
    write, x = node.builder, node.input()
    given = node.optional(2)
    axis = write.ints(-2) if given is None else write.op("Cast", write.reshape(given, write.ints(1)), to=7)
    point = write.reshape(axis, write.ints())
    own = _size(x, axis)
    inverse, onesided = node.get("inverse", 0), node.get("onesided", 0)
    if inverse and onesided:
        length = _size(node.output(), axis)
        half = length / 2 + 1
        transformed = write.op("DFT", g, None, point, onesided=1)
        found = transformed * _weights(length, half, axis, x, g)
        return write.same_type(_fitted(found, own - half, axis), x)
    asked = node.optional(1)
    length = own if asked is None else write.op("Cast", write.reshape(asked, write.ints(1)), to=7)
    if onesided:
        g = _fitted(g, length - _size(g, axis), axis)
    whole = write.op("DFT", g, None, point, inverse=1 - inverse)
    count = write.cast_like(length, g)
    whole = whole / count if inverse else whole * count
    found = _fitted(whole, own - length, axis)
    shape = x.shape
    if shape is None or not isinstance(shape[-1], int):
        # A real input takes the real part.
        found = write.op("Slice", found, write.ints(0), write.size(x, -1), write.ints(-1))
    elif shape[-1] == 1:
        found = write.op("Slice", found, write.ints(0), write.ints(1), write.ints(-1))
    return write.same_type(found, x)


def _size(x: Value, axis: Value) -> Value:
    return x.builder.op("Gather", x.builder.op("Shape", x), axis, axis=0)


def _fitted(x: Value, more: Value, axis: Value) -> Value:
    """Return x with zeros added to, or entries cut from, the end of an axis."""
    write = x.builder
    return write.op("Pad", x, write.op("Concat", write.ints(0), more, axis=0), None, axis)


def _weights(length: Value, half: Value, axis: Value, x: Value, g: Value) -> Value:
    """Return how often the numbers of half a spectrum occur in the whole, over its length, along an axis."""
    write = x.builder
    numbers = write.op("Range", write.constant(0), write.op("Squeeze", half, write.ints(0)), write.constant(1))
    single = write.op("Or", numbers.equals(0), (numbers * 2).equals(length))
    weights = write.where(single, write.number(1, g), 2) / write.cast_like(length, g)
    ones = write.op("Expand", write.ints(1), write.op("Shape", write.op("Shape", x)))
    return write.op("Reshape", weights, write.op("ScatterElements", ones, axis, write.ints(-1)))


@defined_by_others("STFT")
def stft(node: ReversedNode) -> Value:
    """The transforms of windows of the signal. Source: ONNX STFT-17."""
    write, signal, window = node.builder, node.input(0), node.optional(2)
    step = write.op("Cast", node.input(1), to=onnx.TensorProto.INT64)
    given = node.optional(3)
    if given is not None:
        length = write.op("Cast", given, to=onnx.TensorProto.INT64)
    elif window is not None:
        length = write.op("Size", window)
    else:
        raise node.refuse("without a window and a frame_length is not differentiated")
    count = write.op("Squeeze", write.size(node.output(), 1), write.ints(0))
    zero, one = write.constant(0), write.constant(1)
    starts = write.op("Range", zero, count, one) * step
    places = write.op("Unsqueeze", starts, write.ints(1)) + write.op("Range", zero, length, one)
    frames = write.op("Gather", signal, places, axis=1)
    if window is not None:
        frames = frames * write.op("Unsqueeze", window, write.ints(1))
    onesided = node.get("onesided", 1)
    return write.op("DFT", frames, None, write.constant(2), onesided=onesided)
