"""Tensors that are made of sizes, ranges or random numbers."""

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take_onnx("Constant", since=1)
take_onnx("ConstantOfShape", since=9)
take_onnx("Range", since=11)
take_onnx("EyeLike", since=9)
take_onnx("RandomNormal", since=1)
take_onnx("RandomNormalLike", since=1)
take_onnx("RandomUniform", since=1)
take_onnx("RandomUniformLike", since=1)
take_onnx("Bernoulli", since=15)
take_onnx("Multinomial", since=7)
