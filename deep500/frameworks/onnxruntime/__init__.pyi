import deep500.core.requirement

from .executor import OnnxRuntimeExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement
LACKS: dict[str, str]

__all__ = [
    "LACKS",
    "REQUIREMENT",
    "AdamOptimizer",
    "GradientDescent",
    "MomentumOptimizer",
    "OnnxRuntimeExecutor",
    "from_model",
]
