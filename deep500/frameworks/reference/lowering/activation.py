"""Activations."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Relu", "relu", since=6)
take("LeakyRelu", "leaky_relu", since=6)
take("Sigmoid", "sigmoid", since=6)
take("Tanh", "tanh", since=6)
take("Softmax", "softmax", since=13)
take("LogSoftmax", "log_softmax", since=13)
