"""Losses."""

from __future__ import annotations

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._parameters import product, size, sizes, vector
from deep500.frameworks.tensorflow.lowering._softmax import log_softmax
from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32
from deep500.networks.operator_node import OperatorNode

__all__ = ["negative_log_likelihood_loss", "softmax_cross_entropy_loss"]


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
    _check_classes(node, scores.shape[-1], weights)
    counted, valid = _counted(node, labels)
    # What an ignored label scores, NaN even, has no part in the loss.
    counting = scores if counted is None else tf.where(counted[..., None], scores, tf.zeros_like(scores))
    losses = summed_in_float32(lambda scores: tf.nn.sparse_softmax_cross_entropy_with_logits(valid, scores), counting)
    loss = _reduced(node, losses, valid, counted, weights)
    if len(node.outputs) > 1 and node.outputs[1]:
        return loss, log_softmax(scores)
    return loss


@lowerings.register("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    node: OperatorNode, x: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor | None = None
) -> tf.Tensor:
    """Return the negative logarithm of the probability that was given to each label.

    Args:
        node: The node.
        x: Logarithms of probabilities, ``[N, C]`` or ``[N, C, D1, ...]``.
        labels: Class numbers, ``[N]`` or ``[N, D1, ...]``, int32 or int64.
        weights: Weight of each class, ``[C]``.

    Returns:
        The loss: a scalar, or shaped as ``labels`` where ``reduction`` is ``"none"``.

    Source: ONNX NegativeLogLikelihoodLoss-22.
    """
    _check_classes(node, x.shape[1], weights)
    counted, valid = _counted(node, labels)
    rows, classes, places = size(x, 0), size(x, 1), product(sizes(x)[2:])
    label = tf.reshape(valid, vector([rows, places]))
    row, place = (tf.cast(tf.range(number), label.dtype) for number in (rows, places))
    row, place = row[:, None] + tf.zeros_like(label), place[None] + tf.zeros_like(label)
    chosen = tf.gather_nd(tf.reshape(x, vector([rows, classes, places])), tf.stack([row, label, place], -1))
    losses = tf.reshape(-chosen, tf.shape(labels))
    losses.set_shape(labels.shape)
    return _reduced(node, losses, valid, counted, weights)


def _check_classes(node: OperatorNode, classes: int | None, weights: tf.Tensor | None) -> None:
    if classes == 0 or (weights is not None and not weights.shape.is_compatible_with([classes])):
        given = "none" if weights is None else weights.shape
        raise OperatorError(f"{node.label} was given {classes} classes and weights {given}; accepted are one a class.")


def _counted(node: OperatorNode, labels: tf.Tensor) -> tuple[tf.Tensor | None, tf.Tensor]:
    """Return which labels are not ignored, ``None`` for all, and the labels with class 0 for the others."""
    ignored = node.attributes.get("ignore_index")
    if ignored is None:
        return None, labels
    counted = tf.not_equal(labels, tf.cast(ignored, labels.dtype))
    return counted, tf.where(counted, labels, tf.zeros_like(labels))


def _reduced(
    node: OperatorNode, losses: tf.Tensor, valid: tf.Tensor, counted: tf.Tensor | None, weights: tf.Tensor | None
) -> tf.Tensor:
    """Return the losses of all labels, weighted, as one number where the node's ``reduction`` asks for it."""
    weight = None if weights is None else tf.gather(weights, valid)
    if counted is not None:
        # The gradient of a mean over no labels is 0.
        losses = tf.where(counted, losses, tf.zeros_like(losses))
        ones = tf.ones_like(losses) if weight is None else weight
        weight = tf.where(counted, ones, tf.zeros_like(ones))
    if weights is not None:
        losses = losses * weight
    reduction = node.attributes.get("reduction", "mean")
    if reduction == "sum":
        return tf.reduce_sum(losses)
    if reduction == "mean":
        return tf.reduce_mean(losses) if weight is None else tf.reduce_sum(losses) / tf.reduce_sum(weight)
    return losses
