"""Cross-entropy of class scores."""

from __future__ import annotations

import onnx_ir as ir
from onnxscript import OpBuilder

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.loss import Loss

__all__ = ["SoftmaxCrossEntropyLoss"]


class SoftmaxCrossEntropyLoss(Loss):
    r"""Mean cross-entropy between the softmax of scores and class numbers.

    .. math:: L = -\frac{1}{N} \sum_n \log \frac{e^{s_{n, l_n}}}{\sum_c e^{s_{n, c}}}

    Scores are ``[N, C]`` or ``[N, C, D1, D2, ...]`` of a floating dtype; labels are int64 ``[N]`` or
    ``[N, D1, D2, ...]`` with values from 0 to C - 1.

    Source: ONNX SoftmaxCrossEntropyLoss-13.
    """

    def __init__(self, *, ignore_index: int | None = None) -> None:
        """Set what is not counted.

        Args:
            ignore_index: Label of samples that do not count, ``None`` when all do.
        """
        self.ignore_index = ignore_index

    def label_type(self, prediction: TensorDescriptor) -> TensorDescriptor:
        """Return int64 without the class dimension."""
        if prediction.shape is None or len(prediction.shape) < 2:
            raise InvalidInputError(
                f"Cross-entropy needs scores of shape [N, C] or [N, C, D1, ...]; the prediction is {prediction}."
            )
        return TensorDescriptor("int64", (prediction.shape[0], *prediction.shape[2:]))

    def build(self, op: OpBuilder, prediction: ir.Value, label: ir.Value) -> ir.Value:
        """Add one SoftmaxCrossEntropyLoss node."""
        attributes = {} if self.ignore_index is None else {"ignore_index": self.ignore_index}
        value: ir.Value = op.SoftmaxCrossEntropyLoss(prediction, label, reduction="mean", **attributes)
        value.shape = ir.Shape(())
        value.type = prediction.type
        return value
