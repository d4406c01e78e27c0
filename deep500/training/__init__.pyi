from .catalogue import EVENTS, OPTIMIZERS, SAMPLERS, TRAINING_METRICS, find_metric, metric_names
from .events.batch_hash import BatchHashEvent
from .events.progress_bar import TerminalBarEvent
from .metrics.test_accuracy import TestAccuracy
from .metrics.training_accuracy import TrainingAccuracy
from .optimizer import Optimizer, ThreeStepOptimizer, UpdateRuleOptimizer
from .optimizers.adam import AdamOptimizer
from .optimizers.gradient_descent import GradientDescent
from .optimizers.momentum import MomentumOptimizer
from .sampler import Sampler
from .samplers.ordered import OrderedSampler
from .samplers.shuffle import ShuffleSampler
from .statistics import EpochRecord, Outcome, PassRecord, TrainingStatistics
from .trainer import Trainer, default_trainer_events
from .training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining, TrainingEvent

__all__ = [
    "EVENTS",
    "OPTIMIZERS",
    "SAMPLERS",
    "TRAINING_METRICS",
    "AdamOptimizer",
    "BatchHashEvent",
    "EpochRecord",
    "GradientDescent",
    "MomentumOptimizer",
    "Optimizer",
    "OptimizerEvent",
    "OrderedSampler",
    "Outcome",
    "PassRecord",
    "RunnerEvent",
    "Sampler",
    "SamplerEvent",
    "ShuffleSampler",
    "StopTraining",
    "TerminalBarEvent",
    "TestAccuracy",
    "ThreeStepOptimizer",
    "Trainer",
    "TrainingAccuracy",
    "TrainingEvent",
    "TrainingStatistics",
    "UpdateRuleOptimizer",
    "default_trainer_events",
    "find_metric",
    "metric_names",
]
