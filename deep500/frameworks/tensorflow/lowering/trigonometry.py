"""Trigonometric and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan"]


@lowerings.register("Sin", since=7)
def sin(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the sine. Source: ONNX Sin-22."""
    return tf.math.sin(x)


@lowerings.register("Cos", since=7)
def cos(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the cosine. Source: ONNX Cos-22."""
    return tf.math.cos(x)


@lowerings.register("Tan", since=7)
def tan(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the tangent. Source: ONNX Tan-22."""
    return tf.math.tan(x)


@lowerings.register("Asin", since=7)
def asin(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the sine. Source: ONNX Asin-22."""
    return tf.math.asin(x)


@lowerings.register("Acos", since=7)
def acos(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the cosine. Source: ONNX Acos-22."""
    return tf.math.acos(x)


@lowerings.register("Atan", since=7)
def atan(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the tangent. Source: ONNX Atan-22."""
    return tf.math.atan(x)


@lowerings.register("Sinh", since=9)
def sinh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the hyperbolic sine. Source: ONNX Sinh-22."""
    return tf.math.sinh(x)


@lowerings.register("Cosh", since=9)
def cosh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the hyperbolic cosine. Source: ONNX Cosh-22."""
    return tf.math.cosh(x)


@lowerings.register("Asinh", since=9)
def asinh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the hyperbolic sine. Source: ONNX Asinh-22."""
    return tf.math.asinh(x)


@lowerings.register("Acosh", since=9)
def acosh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the hyperbolic cosine. Source: ONNX Acosh-22."""
    return tf.math.acosh(x)


@lowerings.register("Atanh", since=9)
def atanh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the inverse of the hyperbolic tangent. Source: ONNX Atanh-22."""
    return tf.math.atanh(x)
