import deep500.core.requirement

from .executor import TensorFlowExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = ["REQUIREMENT", "AdamOptimizer", "GradientDescent", "MomentumOptimizer", "TensorFlowExecutor", "from_model"]
