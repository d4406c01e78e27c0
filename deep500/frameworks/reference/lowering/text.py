"""Texts."""

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take_onnx("StringConcat", since=20)
take_onnx("StringNormalizer", since=10)
take_onnx("StringSplit", since=20)
take_onnx("RegexFullMatch", since=20)
take_onnx("TfIdfVectorizer", since=9)
