import deep500.core.requirement

from .executor import OnnxRuntimeExecutor, from_model
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

REQUIREMENT: deep500.core.requirement.Requirement
LACKS: dict[str, str]

__all__ = [
    "LACKS",
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
    "OnnxRuntimeExecutor",
    "RMSPropOptimizer",
    "SAMOptimizer",
    "from_model",
]
