"""Convolutions."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Conv", "conv", since=11)
