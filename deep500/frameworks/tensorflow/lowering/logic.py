"""Comparisons, operations on truth values and bits, and choices; inputs broadcast as NumPy's do."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._narrow import decode, element_type
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "bit_shift",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_or_equal",
    "is_inf",
    "is_nan",
    "less",
    "less_or_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "where",
]


@lowerings.register("Equal", since=7)
def equal(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether a = b. Source: ONNX Equal-19."""
    return tf.math.equal(a, b)


@lowerings.register("Less", since=7)
def less(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether a < b. Source: ONNX Less-13."""
    return tf.math.less(a, b)


@lowerings.register("LessOrEqual", since=12)
def less_or_equal(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether a <= b. Source: ONNX LessOrEqual-16."""
    return tf.math.less_equal(a, b)


@lowerings.register("Greater", since=7)
def greater(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether a > b. Source: ONNX Greater-13."""
    return tf.math.greater(a, b)


@lowerings.register("GreaterOrEqual", since=12)
def greater_or_equal(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether a >= b. Source: ONNX GreaterOrEqual-16."""
    return tf.math.greater_equal(a, b)


@lowerings.register("And", since=7)
def logical_and(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether both hold. Source: ONNX And-7."""
    return tf.math.logical_and(a, b)


@lowerings.register("Or", since=7)
def logical_or(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether one holds, or both. Source: ONNX Or-7."""
    return tf.math.logical_or(a, b)


@lowerings.register("Xor", since=7)
def logical_xor(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return whether exactly one holds. Source: ONNX Xor-7."""
    return tf.math.not_equal(a, b)


@lowerings.register("Not", since=1)
def logical_not(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return whether it does not hold. Source: ONNX Not-1."""
    return tf.math.logical_not(x)


@lowerings.register("BitShift", since=11)
def bit_shift(node: OperatorNode, x: tf.Tensor, by: tf.Tensor) -> tf.Tensor:
    """Return x with its bits moved to the ``LEFT`` or, keeping the sign, to the ``RIGHT``.

    Moved by as many bits as there are, or by less than none, nothing but the sign remains. Source: ONNX BitShift-28.
    """
    width = x.dtype.size * 8
    zero = tf.constant(0, x.dtype)
    outside = tf.math.greater_equal(by, tf.constant(width, by.dtype))
    if not by.dtype.is_unsigned:
        outside = tf.logical_or(outside, by < 0)
    # TensorFlow moves by the largest number of bits that there is a meaning for.
    bounded = tf.where(outside, tf.constant(0, by.dtype), by)
    if node.attributes["direction"] == "LEFT":
        return tf.where(outside, zero, tf.bitwise.left_shift(x, bounded))
    sign = zero if x.dtype.is_unsigned else tf.where(x < 0, tf.constant(-1, x.dtype), zero)
    return tf.where(outside, sign, tf.bitwise.right_shift(x, bounded))


@lowerings.register("BitwiseAnd", since=18)
def bitwise_and(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the bits that are set in both. Source: ONNX BitwiseAnd-18."""
    return tf.bitwise.bitwise_and(a, b)


@lowerings.register("BitwiseOr", since=18)
def bitwise_or(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the bits that are set in one, or in both. Source: ONNX BitwiseOr-18."""
    return tf.bitwise.bitwise_or(a, b)


@lowerings.register("BitwiseXor", since=18)
def bitwise_xor(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return the bits that are set in exactly one. Source: ONNX BitwiseXor-18."""
    return tf.bitwise.bitwise_xor(a, b)


@lowerings.register("BitwiseNot", since=18)
def bitwise_not(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the bits that are not set. Source: ONNX BitwiseNot-18."""
    return tf.bitwise.invert(x)


@lowerings.register("Where", since=9)
def where(node: OperatorNode, condition: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a where the condition holds, b elsewhere. Source: ONNX Where-16."""
    return tf.where(condition, a, b)


@lowerings.register("IsNaN", since=9)
def is_nan(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return where x is not a number. Source: ONNX IsNaN-20."""
    return tf.math.is_nan(_floats(node, x))


@lowerings.register("IsInf", since=10)
def is_inf(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return where x is infinite, of the signs that ``detect_negative`` and ``detect_positive`` name.

    Source: ONNX IsInf-20.
    """
    x = _floats(node, x)
    infinite = tf.math.is_inf(x)
    if not node.attributes.get("detect_negative", 1):
        infinite = tf.logical_and(infinite, x > 0)
    if not node.attributes.get("detect_positive", 1):
        infinite = tf.logical_and(infinite, x < 0)
    return infinite


def _floats(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    dtype = element_type(node.input_types[0], x)
    return decode(x, dtype) if dtype in BIT_FLOATS else x
