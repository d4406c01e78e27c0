"""Recurrent layers."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

for operator in ("RNN", "GRU", "LSTM"):
    strategy(operator)(from_library(operator, operator.lower()))
