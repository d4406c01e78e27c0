from .budget import Budget
from .catalogue import EVENTS, OPTIMIZERS, SAMPLERS, TRAINING_METRICS, find_metric, metric_names
from .checkpoints.loading import Checkpoint, load_checkpoint, load_latest
from .checkpoints.writer import CheckpointWriter
from .divergence import explain_divergence
from .events.batch_hash import BatchHashEvent
from .events.checkpoint import CheckpointEvent
from .events.progress_bar import TerminalBarEvent
from .input_pipeline import InputPipeline
from .metrics.bits_per_byte import BitsPerByte
from .metrics.test_accuracy import TestAccuracy
from .metrics.test_loss import TestLoss
from .metrics.training_accuracy import TrainingAccuracy
from .optimizer import Optimizer, ThreeStepOptimizer, UpdateRuleOptimizer
from .optimizers.accelegrad import AcceleGradOptimizer
from .optimizers.adagrad import AdaGradOptimizer
from .optimizers.adam import AdamOptimizer
from .optimizers.adamw import AdamWOptimizer
from .optimizers.amsgrad import AMSGradOptimizer
from .optimizers.gradient_descent import GradientDescent
from .optimizers.lamb import LAMBOptimizer
from .optimizers.lars import LARSOptimizer
from .optimizers.lbfgs import LBFGSOptimizer
from .optimizers.lion import LionOptimizer
from .optimizers.momentum import MomentumOptimizer
from .optimizers.muon import MuonOptimizer
from .optimizers.rmsprop import RMSPropOptimizer
from .optimizers.sam import SAMOptimizer
from .parameter_groups import Multiplier
from .sampler import Sampler
from .samplers.bucket import BucketSampler
from .samplers.choice import ChoiceSampler
from .samplers.ordered import OrderedSampler
from .samplers.shuffle import ShuffleSampler
from .samplers.stratified import StratifiedSampler
from .statistics import EpochRecord, Evaluation, Outcome, PassRecord, TrainingStatistics
from .trainer import Trainer, default_trainer_events
from .training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining, TrainingEvent

__all__ = [
    "EVENTS",
    "OPTIMIZERS",
    "SAMPLERS",
    "TRAINING_METRICS",
    "AMSGradOptimizer",
    "AcceleGradOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "BatchHashEvent",
    "BitsPerByte",
    "BucketSampler",
    "Budget",
    "Checkpoint",
    "CheckpointEvent",
    "CheckpointWriter",
    "ChoiceSampler",
    "EpochRecord",
    "Evaluation",
    "GradientDescent",
    "InputPipeline",
    "LAMBOptimizer",
    "LARSOptimizer",
    "LBFGSOptimizer",
    "LionOptimizer",
    "MomentumOptimizer",
    "MuonOptimizer",
    "Multiplier",
    "Optimizer",
    "OptimizerEvent",
    "OrderedSampler",
    "Outcome",
    "PassRecord",
    "RMSPropOptimizer",
    "RunnerEvent",
    "SAMOptimizer",
    "Sampler",
    "SamplerEvent",
    "ShuffleSampler",
    "StopTraining",
    "StratifiedSampler",
    "TerminalBarEvent",
    "TestAccuracy",
    "TestLoss",
    "ThreeStepOptimizer",
    "Trainer",
    "TrainingAccuracy",
    "TrainingEvent",
    "TrainingStatistics",
    "UpdateRuleOptimizer",
    "default_trainer_events",
    "explain_divergence",
    "find_metric",
    "load_checkpoint",
    "load_latest",
    "metric_names",
]
