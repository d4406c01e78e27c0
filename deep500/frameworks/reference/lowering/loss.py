"""Losses."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss", since=12)
