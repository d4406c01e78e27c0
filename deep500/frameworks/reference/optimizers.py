"""NumPy's own optimizers are the ones that Deep500 writes once for all frameworks."""

from deep500.training.optimizers.accelegrad import AcceleGradOptimizer
from deep500.training.optimizers.adagrad import AdaGradOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.adamw import AdamWOptimizer
from deep500.training.optimizers.amsgrad import AMSGradOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.lamb import LAMBOptimizer
from deep500.training.optimizers.lars import LARSOptimizer
from deep500.training.optimizers.lbfgs import LBFGSOptimizer
from deep500.training.optimizers.lion import LionOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.optimizers.muon import MuonOptimizer
from deep500.training.optimizers.rmsprop import RMSPropOptimizer
from deep500.training.optimizers.sam import SAMOptimizer

__all__ = [
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
    "SAMOptimizer",
]
