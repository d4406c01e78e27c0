"""Signals. The windows are run by their definitions."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("DFT", "dft", since=20)
take("STFT", "stft", since=17)

take_onnx("MelWeightMatrix", since=17)
