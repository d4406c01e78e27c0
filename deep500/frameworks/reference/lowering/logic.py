"""Comparisons, logical and bitwise operators."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("Where", "where", since=9)

take_onnx("Equal", since=7)
take_onnx("Greater", since=7)
take_onnx("GreaterOrEqual", since=12)
take_onnx("Less", since=7)
take_onnx("LessOrEqual", since=12)
take_onnx("And", since=7)
take_onnx("Or", since=7)
take_onnx("Xor", since=7)
take_onnx("Not", since=1)
take_onnx("BitShift", since=11)
take_onnx("BitwiseAnd", since=18)
take_onnx("BitwiseNot", since=18)
take_onnx("BitwiseOr", since=18)
take_onnx("BitwiseXor", since=18)
take_onnx("IsNaN", since=9)
take_onnx("IsInf", since=10)
