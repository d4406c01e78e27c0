"""Activations."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["leaky_relu", "log_softmax", "relu", "sigmoid", "softmax", "tanh"]


@lowerings.register("Relu", since=6)
def relu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return max(x, 0). Source: ONNX Relu-14."""
    return tf.nn.relu(x)


@lowerings.register("LeakyRelu", since=6)
def leaky_relu(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x where it is not negative, alpha x elsewhere. Source: ONNX LeakyRelu-16."""
    return tf.nn.leaky_relu(x, node.attributes.get("alpha", 0.01))


@lowerings.register("Sigmoid", since=6)
def sigmoid(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return 1 / (1 + exp(-x)). Source: ONNX Sigmoid-13."""
    return tf.math.sigmoid(x)


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
    axis = node.attributes.get("axis", -1)
    # TensorFlow's kernel gives zeros beside NaN and infinity; what is added is 0 or, where the maximum is neither, NaN.
    nan = tf.stop_gradient(0 * tf.reduce_max(x, axis, keepdims=True))
    return tf.nn.softmax(x, axis) + nan


@lowerings.register("LogSoftmax", since=13)
def log_softmax(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x - log(sum(exp(x))) along one axis. Source: ONNX LogSoftmax-13."""
    return tf.nn.log_softmax(x, node.attributes.get("axis", -1))
