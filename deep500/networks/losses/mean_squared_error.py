"""Mean squared error."""

from __future__ import annotations

import onnx_ir as ir
from onnxscript import OpBuilder

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.loss import Loss

__all__ = ["MeanSquaredError"]


class MeanSquaredError(Loss):
    r"""Mean of the squared differences over all elements.

    .. math:: L = \frac{1}{n} \sum_i (y_i - t_i)^2

    Prediction and label have the same dtype and shape.
    """

    def label_type(self, prediction: TensorDescriptor) -> TensorDescriptor:
        """Return the prediction's dtype and shape."""
        return prediction

    def build(self, op: OpBuilder, prediction: ir.Value, label: ir.Value) -> ir.Value:
        """Add Sub, Mul and ReduceMean nodes."""
        difference = op.Sub(prediction, label)
        value: ir.Value = op.ReduceMean(op.Mul(difference, difference), keepdims=0)
        value.shape = ir.Shape(())
        value.type = prediction.type
        return value
