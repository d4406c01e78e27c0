"""ONNX Runtime has no optimizers of its own; these are the ones that Deep500 writes once for all frameworks."""

from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.momentum import MomentumOptimizer

__all__ = ["AdamOptimizer", "GradientDescent", "MomentumOptimizer"]
