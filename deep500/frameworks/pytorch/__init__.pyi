import deep500.core.requirement

from .custom_operator import custom_op, custom_op_from_native
from .executor import PyTorchExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = [
    "REQUIREMENT",
    "AdamOptimizer",
    "GradientDescent",
    "MomentumOptimizer",
    "PyTorchExecutor",
    "custom_op",
    "custom_op_from_native",
    "from_model",
]
