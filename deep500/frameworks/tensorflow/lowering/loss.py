"""Losses."""

from __future__ import annotations

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["softmax_cross_entropy_loss"]


@lowerings.register("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    node: OperatorNode, scores: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor | None = None
) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
    """Return the cross-entropy between the softmax of scores and class numbers.

    Args:
        node: The node.
        scores: ``[N, C]`` or ``[N, D1, ..., C]``.
        labels: Class numbers, ``[N]`` or ``[N, D1, ...]``, int32 or int64.
        weights: Weight of each class, ``[C]``.

    Returns:
        The loss: a scalar, or shaped as ``labels`` where ``reduction`` is ``"none"``. If the node has a second output,
        also the logarithm of the softmax, shaped as ``scores``.

    Source: ONNX SoftmaxCrossEntropyLoss-13.
    """
    classes = scores.shape[-1]
    if classes == 0 or (weights is not None and not weights.shape.is_compatible_with([classes])):
        given = "none" if weights is None else weights.shape
        raise OperatorError(f"{node.label} was given {classes} classes and weights {given}; accepted are one a class.")
    ignored = node.attributes.get("ignore_index")
    counted = None if ignored is None else tf.not_equal(labels, tf.cast(ignored, labels.dtype))
    valid = labels if counted is None else tf.where(counted, labels, tf.zeros_like(labels))
    # What an ignored label scores, NaN even, has no part in the loss.
    counting = scores if counted is None else tf.where(counted[..., None], scores, tf.zeros_like(scores))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(valid, counting)
    weight = None
    if weights is not None:
        weight = tf.gather(weights, valid)
    if counted is not None:
        ones = tf.ones_like(losses) if weight is None else weight
        weight = tf.where(counted, ones, tf.zeros_like(ones))
    if weight is not None:
        losses = losses * weight
    if counted is not None:
        # The gradient of a mean over no labels is 0.
        losses = tf.where(counted, losses, tf.zeros_like(losses))
    reduction = node.attributes.get("reduction", "mean")
    if reduction == "sum":
        losses = tf.reduce_sum(losses)
    elif reduction == "mean":
        losses = tf.reduce_mean(losses) if weight is None else tf.reduce_sum(losses) / tf.reduce_sum(weight)
    if len(node.outputs) > 1 and node.outputs[1]:
        return losses, tf.nn.log_softmax(scores)
    return losses
