"""ONNX SoftmaxCrossEntropyLoss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._softmax import log_softmax
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["SoftmaxCrossEntropyLoss"]

_NAME = "SoftmaxCrossEntropyLoss"


class _Read(NamedTuple):
    """The inputs, checked; the floats are in the dtype to compute in."""

    scores: Array
    labels: Array  # 0 in place of ignore_index
    counted: Array  # whether the label is not ignore_index
    weight: Array  # that of the label's class, 0 for ignore_index; the shape of the labels
    divisor: Array  # by what the sum is divided, a scalar


class SoftmaxCrossEntropyLoss(Operator):
    r"""Cross entropy between the softmax of scores and integer labels.

    .. math::
        \ell_i = -w_{y_i} \log \frac{e^{s_{i, y_i}}}{\sum_c e^{s_{i, c}}}

    Inputs: scores ``[N, C, D1, ...]``, a float; labels ``[N, D1, ...]``, int32 or int64, from 0 to C - 1 or equal to
    ``ignore_index``; optionally weights ``[C]`` of the scores' dtype. Outputs, always both: the loss, and log_prob
    (``[N, C, D1, ...]``), the logarithm of the softmax; both of the scores' dtype.

    Reduction ``"none"`` gives every :math:`\ell_i` (``[N, D1, ...]``), ``"sum"`` their sum, ``"mean"`` their sum
    divided by the sum of the weights :math:`w_{y_i}` of labels that are not ignored (without weights: by their
    number; the specification's text does not mention ignored labels there, its reference implementation leaves them
    out). The mean over no labels, or with weights of the sum 0, is NaN, as in the reference implementation. An ignored
    label gives the loss 0 and no gradient, whatever the scores are.

    Source: ONNX SoftmaxCrossEntropyLoss, version 13.
    """

    def __init__(self, *, ignore_index: int | None = None, reduction: str = "mean") -> None:
        """Set the attributes.

        Args:
            ignore_index: Label that does not count; it may lie outside of ``[0, C)``.
            reduction: ``"none"``, ``"sum"`` or ``"mean"``.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.ignore_index = None if ignore_index is None else attributes.integer(_NAME, "ignore_index", ignore_index)
        self.reduction = attributes.choice(_NAME, "reduction", reduction, ("none", "sum", "mean"))

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the loss and log_prob.

        Raises:
            OperatorError: Shapes or dtypes do not fit, or a label is out of range.
        """
        read = self._read(inputs)
        dtype = np.asarray(inputs[0]).dtype
        log_prob = log_softmax(read.scores, 1)
        loss = self._losses(log_prob, read)
        if self.reduction != "none":
            loss = np.asarray(loss.sum() / read.divisor)
        return loss.astype(dtype, copy=False), log_prob.astype(dtype, copy=False)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradients by the scores, through both outputs, and by the weights.

        With :math:`h = \partial L / \partial \log p`, from the loss and from log_prob together, the gradient by the
        scores is :math:`h_c - p_c \sum_k h_k`.
        """
        by_loss = grads[0]
        by_log_prob = grads[1] if len(grads) > 1 else None
        if by_loss is None and by_log_prob is None:
            return (None,) * len(fwd_inputs)
        read = self._read(fwd_inputs)
        dtype = read.scores.dtype
        log_prob = log_softmax(read.scores, 1)
        total = np.zeros(log_prob.shape, dtype) if by_log_prob is None else np.asarray(by_log_prob).astype(dtype)
        by_weights: OptionalArray = None
        if by_loss is not None:
            each = np.asarray(by_loss).astype(dtype, copy=False) / read.divisor
            # Where nothing counts, the divisor is 0 and the share NaN; ignored labels have no gradient even so.
            share = np.where(read.counted, each * read.weight, dtype.type(0))
            place = read.labels[:, None]
            if total.size:
                taken = np.take_along_axis(total, place, axis=1)
                np.put_along_axis(total, place, taken - share[:, None], axis=1)
            if len(fwd_inputs) > 2 and fwd_inputs[2] is not None:
                by_weights = self._by_weights(each, log_prob, read)
        by_scores = total - np.exp(log_prob) * total.sum(axis=1, keepdims=True)
        return returned([by_scores, None, by_weights], fwd_inputs)

    def _losses(self, log_prob: Array, read: _Read) -> Array:
        """Return the loss of every label."""
        if read.labels.size == 0:
            return np.zeros(read.labels.shape, log_prob.dtype)
        picked = np.take_along_axis(log_prob, read.labels[:, None], axis=1)[:, 0]
        return np.where(read.counted, -picked * read.weight, log_prob.dtype.type(0))

    def _by_weights(self, each: Array, log_prob: Array, read: _Read) -> Array:
        """Return the gradient by the weights; in the mean, their sum is the divisor."""
        unit = read._replace(weight=np.ones_like(read.weight))
        change = self._losses(log_prob, unit)
        if self.reduction == "mean":
            change = np.where(read.counted, change - self._losses(log_prob, read).sum() / read.divisor, 0)
        result = np.zeros(read.scores.shape[1], log_prob.dtype)
        np.add.at(result, read.labels[read.counted], (each * change)[read.counted])
        return result

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs and look up the labels' weights."""
        received = take_inputs(_NAME, inputs, ["scores", "labels"], ["weights"])
        scores, labels, weights = present(received[0]), present(received[1]), received[2]
        check_dtypes(_NAME, ["scores", "weights"], [scores, weights], "floats")
        if labels.dtype not in (np.int32, np.int64):
            raise OperatorError(f"{_NAME}: received labels of {labels.dtype}; accepted are int32 and int64.")
        if scores.ndim < 2 or scores.shape[1] == 0 or labels.shape != (scores.shape[0], *scores.shape[2:]):
            raise OperatorError(
                f"{_NAME}: received scores of shape {scores.shape} and labels of shape {labels.shape}; accepted are "
                f"[N, C, D1, ...] and [N, D1, ...] with at least one class."
            )
        classes = scores.shape[1]
        if weights is not None and weights.shape != (classes,):
            raise OperatorError(f"{_NAME}: received weights of shape {weights.shape}; accepted is ({classes},).")
        counted = np.ones(labels.shape, np.bool_) if self.ignore_index is None else labels != self.ignore_index
        wrong = labels[counted & ((labels < 0) | (labels >= classes))]
        if wrong.size:
            ignored = "" if self.ignore_index is None else f", or {self.ignore_index} (ignore_index)"
            raise OperatorError(
                f"{_NAME}: received the label {wrong[0]} for {classes} classes; accepted are labels from 0 to "
                f"{classes - 1}{ignored}."
            )
        labels = np.where(counted, labels, 0)
        wide = compute_dtype(scores.dtype)
        weight = counted.astype(wide)
        if weights is not None and labels.size:
            weight = np.where(counted, weights.astype(wide, copy=False)[labels], wide.type(0))
        divisor = weight.sum() if self.reduction == "mean" else wide.type(1)
        return _Read(scores.astype(wide, copy=False), labels, counted, weight, np.asarray(divisor))
