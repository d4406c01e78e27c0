"""Signals."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

strategy("DFT")(from_library("DFT", "dft"))
strategy("STFT")(from_library("STFT", "stft"))
