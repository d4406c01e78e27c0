import deep500.core.requirement

from .custom_operator import custom_op, custom_op_from_native
from .custom_operator_call import prepare_call
from .custom_operator_check import custom_op_checks
from .executor import ReferenceExecutor, from_model
from .optimizers import (
    AcceleGradOptimizer,
    AdaGradOptimizer,
    AdamOptimizer,
    AdamWOptimizer,
    AMSGradOptimizer,
    GradientDescent,
    LAMBOptimizer,
    LARSOptimizer,
    LBFGSOptimizer,
    LionOptimizer,
    MomentumOptimizer,
    MuonOptimizer,
    RMSPropOptimizer,
    SAMOptimizer,
)
from .problem_functions import problem_function
from .validated_operator import as_operator

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = [
    "REQUIREMENT",
    "AMSGradOptimizer",
    "AcceleGradOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "GradientDescent",
    "LAMBOptimizer",
    "LARSOptimizer",
    "LBFGSOptimizer",
    "LionOptimizer",
    "MomentumOptimizer",
    "MuonOptimizer",
    "RMSPropOptimizer",
    "ReferenceExecutor",
    "SAMOptimizer",
    "as_operator",
    "custom_op",
    "custom_op_checks",
    "custom_op_from_native",
    "from_model",
    "prepare_call",
    "problem_function",
]
