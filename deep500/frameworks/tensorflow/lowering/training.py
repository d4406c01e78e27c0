"""Update rules of optimizers, as operators of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["adagrad", "adam", "momentum"]

_DOMAIN = "ai.onnx.preview.training"


@lowerings.register("Adagrad", since=1, domain=_DOMAIN)
def adagrad(node: OperatorNode, rate: tf.Tensor, count: tf.Tensor, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    r"""Return, for each parameter, x - r g / (sqrt(h) + epsilon) and h, to which g squared was added.

    Args:
        node: The node.
        rate: The learning rate R; :math:`r = R / (1 + T \cdot decay)`.
        count: The number T of updates before this one.
        *tensors: All parameters x, then their gradients g, then their sums of squares h.

    Source: ONNX Adagrad-1 of ai.onnx.preview.training.
    """
    epsilon = node.attributes.get("epsilon", 1e-6)
    decay = node.attributes.get("decay_factor", 0.0)
    weight_decay = node.attributes.get("norm_coefficient", 0.0)

    def update(x: tf.Tensor, g: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, ...]:
        r = tf.cast(rate, x.dtype) / (1 + tf.cast(count, x.dtype) * decay)
        g = weight_decay * x + g
        h = h + g * g
        return x - r * g / (tf.sqrt(h) + epsilon), h

    return _for_each(update, tensors, 3)


@lowerings.register("Adam", since=1, domain=_DOMAIN)
def adam(node: OperatorNode, rate: tf.Tensor, count: tf.Tensor, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    r"""Return, for each parameter, x - r v / (sqrt(h) + epsilon), v and h.

    Args:
        node: The node.
        rate: The learning rate R; :math:`r = R \sqrt{1 - \beta^T} / (1 - \alpha^T)`, or R where T is 0.
        count: The number T of updates before this one.
        *tensors: All parameters x, then their gradients, then the means v of gradients, then the means h of squares.

    Source: ONNX Adam-1 of ai.onnx.preview.training.
    """
    alpha, beta = node.attributes.get("alpha", 0.9), node.attributes.get("beta", 0.999)
    epsilon = node.attributes.get("epsilon", 1e-6)
    before, behind = (node.attributes.get(f"norm_coefficient{suffix}", 0.0) for suffix in ("", "_post"))

    def update(x: tf.Tensor, g: tf.Tensor, v: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, ...]:
        g = before * x + g
        v = alpha * v + (1 - alpha) * g
        h = beta * h + (1 - beta) * (g * g)
        r, t = tf.cast(rate, x.dtype), tf.cast(count, x.dtype)
        base_1, base_2 = tf.constant(alpha, x.dtype), tf.constant(beta, x.dtype)
        later = tf.maximum(t, 1)  # what is not chosen must be finite
        corrected = r * tf.sqrt(1 - base_2**later) / (1 - base_1**later)
        r = tf.where(t > 0, corrected, r)
        return (1 - behind) * (x - r * v / (tf.sqrt(h) + epsilon)), v, h

    return _for_each(update, tensors, 4)


@lowerings.register("Momentum", since=1, domain=_DOMAIN)
def momentum(node: OperatorNode, rate: tf.Tensor, count: tf.Tensor, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    r"""Return, for each parameter, x - R v and :math:`v = \alpha v + \beta g`; or Nesterov's x - R (g + alpha v).

    Args:
        node: The node.
        rate: The learning rate R.
        count: The number of updates before this one; at the first one beta is 1.
        *tensors: All parameters x, then their gradients g, then their momenta v.

    Source: ONNX Momentum-1 of ai.onnx.preview.training.
    """
    alpha, beta = node.attributes["alpha"], node.attributes["beta"]
    weight_decay = node.attributes["norm_coefficient"]
    is_nesterov = node.attributes["mode"] == "nesterov"

    def update(x: tf.Tensor, g: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, ...]:
        g = weight_decay * x + g
        factor = tf.where(count > 0, tf.constant(beta, x.dtype), tf.constant(1, x.dtype))
        v = alpha * v + factor * g
        return x - tf.cast(rate, x.dtype) * (g + alpha * v if is_nesterov else v), v

    return _for_each(update, tensors, 3)


def _for_each(
    update: Callable[..., tuple[tf.Tensor, ...]], tensors: Sequence[tf.Tensor], kinds: int
) -> tuple[tf.Tensor, ...]:
    """Return what an update gives for each parameter: all first results, then all second ones, ..."""
    count = len(tensors) // kinds
    results = [update(*tensors[index::count]) for index in range(count)]
    return tuple(value for kind in zip(*results, strict=True) for value in kind)
