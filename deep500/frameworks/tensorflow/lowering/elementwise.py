"""Arithmetic, element by element; two inputs broadcast as NumPy's do."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._tensors import unfused
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "absolute",
    "add",
    "cast",
    "clip",
    "divide",
    "exp",
    "identity",
    "log",
    "multiply",
    "negate",
    "power",
    "sqrt",
    "subtract",
]


@lowerings.register("Add", since=7)
def add(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a + b. Source: ONNX Add-14."""
    return tf.math.add(*(unfused(x) if _is_product(x) and y.shape.rank != 1 else x for x, y in ((a, b), (b, a))))


@lowerings.register("Sub", since=7)
def subtract(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a - b. Source: ONNX Sub-14."""
    return tf.math.subtract(a, b)


@lowerings.register("Mul", since=7)
def multiply(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a b. Source: ONNX Mul-14."""
    return tf.math.multiply(a, b)


@lowerings.register("Div", since=7)
def divide(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a / b; integers are divided towards zero. Source: ONNX Div-14."""
    return tf.truncatediv(a, b) if a.dtype.is_integer else tf.math.divide(a, b)


@lowerings.register("Pow", since=7)
def power(node: OperatorNode, base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """Return the power, in the dtype of the base. Source: ONNX Pow-15."""
    if base.dtype.is_integer and exponent.dtype.is_floating:
        return tf.cast(tf.math.pow(tf.cast(base, exponent.dtype), exponent), base.dtype)
    return tf.math.pow(base, tf.cast(exponent, base.dtype))


@lowerings.register("Neg", since=6)
def negate(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return -x. Source: ONNX Neg-13."""
    return tf.math.negative(x)


@lowerings.register("Exp", since=6)
def exp(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the exponential. Source: ONNX Exp-13."""
    return tf.math.exp(x)


@lowerings.register("Log", since=6)
def log(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the natural logarithm. Source: ONNX Log-13."""
    return tf.math.log(x)


@lowerings.register("Sqrt", since=6)
def sqrt(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the square root. Source: ONNX Sqrt-13."""
    return tf.math.sqrt(x)


@lowerings.register("Abs", since=6)
def absolute(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the absolute value. Source: ONNX Abs-13."""
    return tf.math.abs(x)


@lowerings.register("Clip", since=11)
def clip(
    node: OperatorNode, x: tf.Tensor, lowest: tf.Tensor | None = None, highest: tf.Tensor | None = None
) -> tf.Tensor:
    """Return x, raised to ``lowest`` and then lowered to ``highest`` (scalars). Source: ONNX Clip-13."""
    for bound in (lowest, highest):
        if bound is not None and bound.shape.rank:
            raise OperatorError(f"{node.label} was given a bound of shape {bound.shape}; accepted are scalars.")
    if lowest is not None:
        x = tf.math.maximum(x, lowest)
    return x if highest is None else tf.math.minimum(x, highest)


@lowerings.register("Cast", since=6)
def cast(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x in the dtype that the attribute ``to`` names. Source: ONNX Cast-25."""
    return tf.cast(x, ir.DataType(node.attributes["to"]).numpy())


@lowerings.register("Identity", since=1)
def identity(node: OperatorNode, x: Any) -> Any:
    """Return x, a value of any kind. Source: ONNX Identity-25."""
    return tf.identity(x) if isinstance(x, tf.Tensor) else x


def _is_product(x: tf.Tensor) -> bool:
    """Return whether a tensor is a matrix product, which TensorFlow would fuse with a matrix as if it were a bias."""
    operation = x.op
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    return bool(operation.type == "MatMul")
