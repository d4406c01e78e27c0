import deep500.core.requirement

from .communicator import TorchDistributedCommunicator
from .custom_operator import custom_op, custom_op_from_native
from .custom_operator_call import prepare_call
from .custom_operator_check import custom_op_checks
from .executor import PyTorchExecutor, from_model
from .model_import import import_model
from .optimizers import (
    AdaGradOptimizer,
    AdamOptimizer,
    AdamWOptimizer,
    AMSGradOptimizer,
    GradientDescent,
    LBFGSOptimizer,
    MomentumOptimizer,
    MuonOptimizer,
    RMSPropOptimizer,
)
from .problem_functions import problem_function
from .validated_operator import as_operator

REQUIREMENT: deep500.core.requirement.Requirement

__all__ = [
    "REQUIREMENT",
    "AMSGradOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "GradientDescent",
    "LBFGSOptimizer",
    "MomentumOptimizer",
    "MuonOptimizer",
    "PyTorchExecutor",
    "RMSPropOptimizer",
    "TorchDistributedCommunicator",
    "as_operator",
    "custom_op",
    "custom_op_checks",
    "custom_op_from_native",
    "from_model",
    "import_model",
    "prepare_call",
    "problem_function",
]
