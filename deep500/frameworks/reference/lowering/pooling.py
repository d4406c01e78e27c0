"""Pooling."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("MaxPool", "max_pool", since=12)
take("AveragePool", "average_pool", since=11)
take("LpPool", "lp_pool", since=18)
take("GlobalAveragePool", "global_average_pool", since=1)
take("GlobalMaxPool", "global_max_pool", since=1)
take("GlobalLpPool", "global_lp_pool", since=2)
take("MaxUnpool", "max_unpool", since=11)
take("MaxRoiPool", "max_roi_pool", since=1)
