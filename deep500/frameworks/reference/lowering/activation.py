"""Activations; what is not here is computed by ONNX' own definition."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("Relu", "relu", since=6)
take("LeakyRelu", "leaky_relu", since=6)
take("Sigmoid", "sigmoid", since=6)
take("Tanh", "tanh", since=6)
take("Softmax", "softmax", since=13)
take("LogSoftmax", "log_softmax", since=13)
take("PRelu", "p_relu", since=7)
take("Elu", "elu", since=6)
take("Celu", "celu", since=12)
take("Selu", "selu", since=6)
take("Gelu", "gelu", since=20)
take("HardSwish", "hard_swish", since=14)
take("Softplus", "softplus", since=1)

take_onnx("Hardmax", since=13)
