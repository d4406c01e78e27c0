"""Pooling."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("MaxPool", "max_pool", since=12)
take("AveragePool", "average_pool", since=11)
take("GlobalAveragePool", "global_average_pool", since=1)
take("GlobalMaxPool", "global_max_pool", since=1)
