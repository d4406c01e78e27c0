"""Activations."""

from __future__ import annotations

import math

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._softmax import log_softmax as log_softmax_along
from deep500.frameworks.tensorflow.lowering._softmax import softmax as softmax_along
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "hardmax",
    "leaky_relu",
    "log_softmax",
    "mish",
    "prelu",
    "relu",
    "selu",
    "shrink",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "swiglu",
    "swish",
    "tanh",
    "thresholded_relu",
]


@lowerings.register("Relu", since=6)
def relu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return max(x, 0). Source: ONNX Relu-14."""
    return tf.nn.relu(x)


@lowerings.register("LeakyRelu", since=6)
def leaky_relu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x where it is not negative, alpha x elsewhere. Source: ONNX LeakyRelu-16."""
    return tf.nn.leaky_relu(x, node.attributes.get("alpha", 0.01))


@lowerings.register("PRelu", since=9)
def prelu(node: OperatorNode, x: tf.Tensor, slope: tf.Tensor) -> tf.Tensor:
    """Return x where it is not negative, slope x elsewhere; the slope broadcasts to x. Source: ONNX PRelu-16."""
    negative = tf.zeros_like(x, tf.bool) if x.dtype.is_unsigned else x < 0
    return tf.where(negative, slope * x, x)


@lowerings.register("ThresholdedRelu", since=10)
def thresholded_relu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x where it is greater than alpha, 0 elsewhere. Source: ONNX ThresholdedRelu-22."""
    return tf.where(x > tf.constant(node.attributes.get("alpha", 1.0), x.dtype), x, tf.zeros_like(x))


@lowerings.register("Elu", since=6)
def elu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x where it is not negative, alpha (exp(x) - 1) elsewhere. Source: ONNX Elu-22."""
    return _exponential(x, node.attributes.get("alpha", 1.0))


@lowerings.register("Celu", since=12)
def celu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return max(x, 0) + min(alpha (exp(x / alpha) - 1), 0). Source: ONNX Celu-28."""
    alpha = node.attributes.get("alpha", 1.0)
    if alpha < 0:
        # Both parts can be there at once, or none.
        scale = tf.constant(alpha, x.dtype)
        return tf.nn.relu(x) + tf.minimum(scale * tf.math.expm1(x / scale), tf.constant(0, x.dtype))
    return _exponential(x, alpha, 1 / alpha)


@lowerings.register("Selu", since=6)
def selu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return gamma x where x is positive, gamma alpha (exp(x) - 1) elsewhere. Source: ONNX Selu-22."""
    gamma = tf.constant(node.attributes.get("gamma", 1.05070102214813232421875), x.dtype)
    return gamma * _exponential(x, node.attributes.get("alpha", 1.67326319217681884765625))


@lowerings.register("Gelu", since=20)
def gelu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`x \Phi(x)`, where the normal distribution may be approximated with tanh. Source: ONNX Gelu-20."""
    approximate = node.attributes.get("approximate", "none") == "tanh"
    if x.dtype != tf.float64:
        return tf.nn.gelu(x, approximate=approximate)
    # TensorFlow rounds the constants to 32 bits.
    if approximate:
        return 0.5 * x * (1 + tf.math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + tf.math.erf(x * math.sqrt(0.5)))


@lowerings.register("Mish", since=18)
def mish(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x tanh(log(1 + exp(x))). Source: ONNX Mish-22."""
    return x * tf.math.tanh(tf.math.softplus(x))


@lowerings.register("Swish", since=24)
def swish(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x / (1 + exp(-alpha x)). Source: ONNX Swish-24."""
    return _swish(x, node.attributes.get("alpha", 1.0))


@lowerings.register("SwiGLU", since=28)
def swiglu(node: OperatorNode, gate: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Return x gate / (1 + exp(-alpha gate)). Source: ONNX SwiGLU-28."""
    return _swish(gate, node.attributes.get("alpha", 1.0)) * x


@lowerings.register("Sigmoid", since=6)
def sigmoid(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 / (1 + exp(-x)). Source: ONNX Sigmoid-13."""
    return tf.math.sigmoid(x)


@lowerings.register("HardSigmoid", since=6)
def hard_sigmoid(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return alpha x + beta, between 0 and 1. Source: ONNX HardSigmoid-22."""
    return _hard_sigmoid(x, node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5))


@lowerings.register("HardSwish", since=14)
def hard_swish(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x times (x / 6 + 1 / 2), the latter between 0 and 1. Source: ONNX HardSwish-22."""
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


@lowerings.register("Softplus", since=1)
def softplus(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return log(1 + exp(x)). Source: ONNX Softplus-22."""
    return tf.math.softplus(x)


@lowerings.register("Softsign", since=1)
def softsign(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x / (1 + abs(x)). Source: ONNX Softsign-22."""
    return tf.nn.softsign(x)


@lowerings.register("Shrink", since=9)
def shrink(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x, moved towards 0 by ``bias``, where it is farther from 0 than ``lambd``; 0 elsewhere.

    Source: ONNX Shrink-9.
    """
    # Borders and distance may be fractions, whatever the type of x.
    wide = x if x.dtype.is_floating else tf.cast(x, tf.float64)
    border, bias = (tf.constant(node.attributes.get(name, value), wide.dtype) for name, value in _SHRINK_DEFAULTS)
    moved = tf.where(wide < -border, wide + bias, tf.where(wide > border, wide - bias, tf.zeros_like(wide)))
    return tf.cast(moved, x.dtype)


_SHRINK_DEFAULTS = (("lambd", 0.5), ("bias", 0.0))


@lowerings.register("Tanh", since=6)
def tanh(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the hyperbolic tangent. Source: ONNX Tanh-13."""
    if x.op.type == "FusedBatchNormV3":
        # TensorFlow 2.21 would fuse convolution, normalisation and this, and then has no kernel for it.
        x = tf.ensure_shape(x, x.shape)
    return tf.math.tanh(x)


@lowerings.register("Softmax", since=13)
def softmax(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return exp(x) / sum(exp(x)) along one axis. Source: ONNX Softmax-13."""
    return softmax_along(x, node.attributes.get("axis", -1))


@lowerings.register("LogSoftmax", since=13)
def log_softmax(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x - log(sum(exp(x))) along one axis. Source: ONNX LogSoftmax-13."""
    return log_softmax_along(x, node.attributes.get("axis", -1))


@lowerings.register("Hardmax", since=13)
def hardmax(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 at the first maximum along one axis, 0 elsewhere. Source: ONNX Hardmax-13."""
    axis = node.attributes.get("axis", -1) % x.shape.rank
    size = tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]
    one, zero = tf.constant(1, x.dtype), tf.constant(0, x.dtype)
    return tf.ensure_shape(tf.one_hot(tf.argmax(x, axis), size, one, zero, axis), x.shape)


def _exponential(x: tf.Tensor, alpha: float, factor: float = 1.0) -> tf.Tensor:
    """Return x where it is not negative, alpha (exp(factor x) - 1) elsewhere."""
    # The exponential of what is not chosen must be finite: its gradient is multiplied by 0.
    negative = tf.minimum(x, tf.constant(0, x.dtype))
    exponential = tf.math.expm1(tf.constant(factor, x.dtype) * negative)
    return tf.where(x < 0, tf.constant(alpha, x.dtype) * exponential, x)


def _swish(x: tf.Tensor, alpha: float) -> tf.Tensor:
    return tf.nn.silu(x) if alpha == 1 else x * tf.math.sigmoid(tf.constant(alpha, x.dtype) * x)


def _hard_sigmoid(x: tf.Tensor, alpha: float, beta: float) -> tf.Tensor:
    one, zero = tf.constant(1, x.dtype), tf.constant(0, x.dtype)
    return tf.maximum(tf.minimum(tf.constant(alpha, x.dtype) * x + tf.constant(beta, x.dtype), one), zero)
