"""Arithmetic, element by element; two inputs broadcast as NumPy's do."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._tensors import unfused, with_gradient_of
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "absolute",
    "add",
    "ceil",
    "clip",
    "divide",
    "erf",
    "exp",
    "floor",
    "identity",
    "log",
    "maximum",
    "mean",
    "minimum",
    "modulo",
    "multiply",
    "negate",
    "power",
    "reciprocal",
    "round_half_even",
    "sign",
    "sqrt",
    "subtract",
    "total",
]


@lowerings.register("Add", since=7)
def add(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return a + b. Source: ONNX Add-14."""
    return tf.math.add(*(unfused(x) if _is_fused_wrongly(x, y) else x for x, y in ((a, b), (b, a))))


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


@lowerings.register("Mod", since=10)
def modulo(node: OperatorNode, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Return what remains of a after division by b, with the sign of b; with that of a if ``fmod`` is 1.

    Source: ONNX Mod-28.
    """
    truncated = bool(node.attributes.get("fmod", 0))
    if a.dtype.is_integer:
        return a - tf.truncatediv(a, b) * b if truncated else tf.math.floormod(a, b)
    wide = a.dtype if a.dtype.size >= 4 else tf.float32
    x, y = tf.cast(a, wide), tf.cast(b, wide)
    # Computed from the quotient, the remainder would have the quotient's error; TensorFlow's own has no gradient.
    remainder = tf.raw_ops.TruncateMod(x=x, y=y)
    if not truncated:
        zero = tf.where(y < 0, tf.constant(-0.0, wide), tf.constant(0, wide))
        moved = tf.where((remainder < 0) == (y < 0), remainder, remainder + y)
        remainder = tf.where(remainder == 0, zero, moved)
    steps = tf.stop_gradient(tf.round((x - remainder) / y))
    return tf.cast(with_gradient_of(remainder, x - steps * y), a.dtype)


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


@lowerings.register("Reciprocal", since=6)
def reciprocal(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 / x. Source: ONNX Reciprocal-13."""
    return tf.math.divide(tf.constant(1, x.dtype), x)


@lowerings.register("Abs", since=6)
def absolute(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the absolute value. Source: ONNX Abs-13."""
    return tf.identity(x) if x.dtype.is_unsigned else tf.math.abs(x)


@lowerings.register("Sign", since=9)
def sign(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return -1, 0 or 1. Source: ONNX Sign-13."""
    return tf.cast(x != 0, x.dtype) if x.dtype.is_unsigned else tf.math.sign(x)


@lowerings.register("Ceil", since=6)
def ceil(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the least whole number that is not less than x. Source: ONNX Ceil-13."""
    return tf.math.ceil(x)


@lowerings.register("Floor", since=6)
def floor(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the greatest whole number that is not greater than x. Source: ONNX Floor-13."""
    return tf.math.floor(x)


@lowerings.register("Round", since=11)
def round_half_even(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the nearest whole number, the even one of two. Source: ONNX Round-22."""
    return tf.math.round(x)


@lowerings.register("Erf", since=9)
def erf(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the error function. Source: ONNX Erf-13."""
    return tf.math.erf(x)


@lowerings.register("Max", since=8)
def maximum(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the greatest of all. Source: ONNX Max-13."""
    return functools.reduce(tf.math.maximum, tensors) if len(tensors) > 1 else tf.identity(tensors[0])


@lowerings.register("Min", since=8)
def minimum(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the least of all. Source: ONNX Min-13."""
    return functools.reduce(tf.math.minimum, tensors) if len(tensors) > 1 else tf.identity(tensors[0])


@lowerings.register("Sum", since=8)
def total(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the sum of all. Source: ONNX Sum-13."""
    if len(tensors) == 1:
        return tf.identity(tensors[0])
    return functools.reduce(lambda a, b: add(node, a, b), tensors)


@lowerings.register("Mean", since=8)
def mean(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the mean of all. Source: ONNX Mean-13."""
    return total(node, *tensors) / tf.constant(len(tensors), tensors[0].dtype)


@lowerings.register("Clip", since=11)
def clip(
    node: OperatorNode, x: tf.Tensor, lowest: tf.Tensor | None = None, highest: tf.Tensor | None = None
) -> tf.Tensor:
    """Return x, raised to ``lowest`` and then lowered to ``highest`` (scalars). Source: ONNX Clip-13."""
    for bound in (lowest, highest):
        if bound is not None and bound.shape.rank:
            raise OperatorError(f"{node.label} was given a bound of shape {bound.shape}; accepted are scalars.")
    fused = _fused_clip(node, x)
    if fused is not None:
        return fused
    if lowest is not None:
        x = tf.math.maximum(x, lowest)
    return x if highest is None else tf.math.minimum(x, highest)


#: What TensorFlow fuses with the convolution before it, by the bounds.
_FUSED_CLIPS: dict[tuple[float | None, float | None], Any] = {(0.0, 6.0): tf.nn.relu6, (0.0, None): tf.nn.relu}


def _fused_clip(node: OperatorNode, x: tf.Tensor) -> tf.Tensor | None:
    """Return a clipped tensor by an activation that does the same, ``None`` where there is none."""
    if not x.dtype.is_floating or any(node.is_given(index) and index not in node.constants for index in (1, 2)):
        return None
    lowest, highest = (float(node.constants[index]) if node.is_given(index) else None for index in (1, 2))
    activation = _FUSED_CLIPS.get((lowest, highest))
    if activation is None:
        return None

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def clipped(x: tf.Tensor) -> Any:
        def backward(gradient: tf.Tensor) -> tf.Tensor:
            # At the bounds, an activation has the derivative 0; a Clip has 1 there, as in every framework.
            inside = (x >= 0) if highest is None else (x >= 0) & (x <= highest)
            return tf.where(inside, gradient, tf.zeros_like(gradient))

        return activation(x), backward

    return clipped(x)


@lowerings.register("Identity", since=1)
def identity(node: OperatorNode, x: Any) -> Any:
    """Return x, a value of any kind. Source: ONNX Identity-25."""
    return tf.identity(x) if isinstance(x, tf.Tensor) else x


def _is_fused_wrongly(x: tf.Tensor, y: tf.Tensor) -> bool:
    """Return whether TensorFlow would rewrite x + y wrongly.

    It fuses a matrix product with a matrix as if that were a bias. And it turns (z + bias) + constant into z +
    (constant + bias), which it cannot compute when the constant has a single element in the place of the channels.
    """
    operation = x.op
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    if operation.type == "BiasAdd":
        return bool(y.shape.rank and y.shape[-1] == 1)
    return bool(operation.type == "MatMul" and y.shape.rank != 1)
