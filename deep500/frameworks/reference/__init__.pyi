import deep500.core.requirement

from .executor import ReferenceExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = ["REQUIREMENT", "AdamOptimizer", "GradientDescent", "MomentumOptimizer", "ReferenceExecutor", "from_model"]
