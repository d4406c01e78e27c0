"""What no other file of this package lists yet."""

from __future__ import annotations

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

# Version 0, so that a file that lists the operator wins.
for _op_type in (
    "Col2Im", "ConvTranspose", "DeformConv", "LpPool", "GlobalLpPool", "MaxUnpool", "MaxRoiPool",
    "InstanceNormalization", "LpNormalization", "LRN", "Dropout", "RNN", "GRU", "LSTM", "Resize", "Upsample",
    "GridSample", "RoiAlign", "NonMaxSuppression", "ImageDecoder", "DFT", "STFT", "MelWeightMatrix",
):  # fmt: skip
    take_onnx(_op_type, since=0, has_gradient=True)
