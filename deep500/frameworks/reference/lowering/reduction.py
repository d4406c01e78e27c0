"""Reductions."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("ReduceMean", "reduce_mean", since=18)
take("ReduceSum", "reduce_sum", since=13)
