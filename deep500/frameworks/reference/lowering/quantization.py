"""Quantised numbers, and products of them."""

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take_onnx("QuantizeLinear", since=10)
take_onnx("DequantizeLinear", since=10, has_gradient=True)
take_onnx("DynamicQuantizeLinear", since=11)
take_onnx("QLinearConv", since=10)
take_onnx("QLinearMatMul", since=10)
take_onnx("MatMulInteger", since=10)
take_onnx("ConvInteger", since=10)
