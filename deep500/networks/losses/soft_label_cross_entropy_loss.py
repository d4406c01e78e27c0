"""Cross-entropy of class scores and probabilities of classes."""

from __future__ import annotations

import onnx_ir as ir
from onnxscript import OpBuilder

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.loss import Loss

__all__ = ["SoftLabelCrossEntropyLoss"]


class SoftLabelCrossEntropyLoss(Loss):
    r"""Mean cross-entropy between the softmax of scores and probabilities of the classes.

    .. math:: L = -\frac{1}{N} \sum_n \sum_c p_{n, c} \log \frac{e^{s_{n, c}}}{\sum_k e^{s_{n, k}}}

    Scores are ``[N, C]`` or ``[N, C, D1, D2, ...]`` of a floating dtype; labels are probabilities of the same dtype and
    shape, as the augmentations ``Mixup(classes=C)`` and ``OneHot(C)`` make them of class numbers. For probabilities
    that are 1 for one class it is ``SoftmaxCrossEntropyLoss``.

    Source: ONNX LogSoftmax-13.
    """

    def label_type(self, prediction: TensorDescriptor) -> TensorDescriptor:
        """Return the prediction's dtype and shape."""
        if prediction.shape is None or len(prediction.shape) < 2:
            raise InvalidInputError(
                f"Cross-entropy needs scores of shape [N, C] or [N, C, D1, ...]; the prediction is {prediction}."
            )
        return prediction

    def build(self, op: OpBuilder, prediction: ir.Value, label: ir.Value) -> ir.Value:
        """Add LogSoftmax, Mul, ReduceSum, ReduceMean and Neg nodes."""
        classes = op.Constant(value=ir.tensor([1], dtype=ir.DataType.INT64))
        likelihood = op.ReduceSum(op.Mul(label, op.LogSoftmax(prediction, axis=1)), classes, keepdims=0)
        value: ir.Value = op.Neg(op.ReduceMean(likelihood, keepdims=0))
        value.shape = ir.Shape(())
        value.type = prediction.type
        return value
