"""Losses."""

from dataclasses import replace

from tests.conformance.onnx_gradients.cases import GradientCase, from_library, strategy

cross_entropy = from_library("SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss")
strategy("SoftmaxCrossEntropyLoss")(cross_entropy)


def _likelihood(case: GradientCase) -> GradientCase:
    return replace(case, operator="NegativeLogLikelihoodLoss", outputs=1, differentiable_outputs=(0,))


strategy("NegativeLogLikelihoodLoss")(cross_entropy.map(_likelihood))
