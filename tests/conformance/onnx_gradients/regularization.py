"""What only training does, where it is not random."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

strategy("Dropout")(from_library("Dropout", "dropout", differentiable=(0,), differentiable_outputs=(0,)))
