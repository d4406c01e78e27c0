"""Normalisation."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("BatchNormalization", "batch_normalization", since=15)
