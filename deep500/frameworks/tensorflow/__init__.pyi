import deep500.core.requirement

from .custom_operator import custom_op, custom_op_from_native, load_custom_operators
from .executor import TensorFlowExecutor, from_model
from .optimizers import AdamOptimizer, GradientDescent, MomentumOptimizer

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = [
    "REQUIREMENT",
    "AdamOptimizer",
    "GradientDescent",
    "MomentumOptimizer",
    "TensorFlowExecutor",
    "custom_op",
    "custom_op_from_native",
    "from_model",
    "load_custom_operators",
]
