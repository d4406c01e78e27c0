import deep500.core.requirement

from .executor import PyTorchExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = ["REQUIREMENT", "AdamOptimizer", "GradientDescent", "MomentumOptimizer", "PyTorchExecutor", "from_model"]
