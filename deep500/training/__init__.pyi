from .budget import Budget
from .catalogue import EVENTS, OPTIMIZERS, SAMPLERS, SCHEDULES, TRAINING_METRICS, find_metric, metric_names
from .checkpoints.loading import Checkpoint, load_checkpoint, load_latest
from .checkpoints.writer import CheckpointWriter
from .determinism import deterministic_mode
from .divergence import explain_divergence
from .events.batch_hash import BatchHashEvent
from .events.checkpoint import CheckpointEvent
from .events.progress_bar import TerminalBarEvent
from .input_pipeline import InputPipeline
from .loss_scaling import DynamicLossScale, LossScaledOptimizer
from .metrics.bits_per_byte import BitsPerByte
from .metrics.dataset_bias import DatasetBias
from .metrics.sampler_event_metric import SamplerEventMetric
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
from .precision import apply_precision, precise_optimizer
from .sampler import Sampler
from .samplers.bucket import BucketSampler
from .samplers.choice import ChoiceSampler
from .samplers.ordered import OrderedSampler
from .samplers.shuffle import ShuffleSampler
from .samplers.stratified import StratifiedSampler
from .schedule import Schedule
from .statistics import EpochRecord, Evaluation, Outcome, PassRecord, TrainingStatistics
from .trainer import Trainer, default_trainer_events
from .training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining, TrainingEvent
from .validation.convergence import check_convergence, work_to_target
from .validation.optimizer_check import test_optimizer
from .validation.reference_runs import ReferenceRuns, read_reference_runs, write_reference_runs
from .validation.sampler_check import test_sampler
from .validation.several_runs import run_statistics
from .validation.training_check import test_training
from .validation.trajectories import compare_trajectories

__all__ = [
    "EVENTS",
    "OPTIMIZERS",
    "SAMPLERS",
    "SCHEDULES",
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
    "DatasetBias",
    "DynamicLossScale",
    "EpochRecord",
    "Evaluation",
    "GradientDescent",
    "InputPipeline",
    "LAMBOptimizer",
    "LARSOptimizer",
    "LBFGSOptimizer",
    "LionOptimizer",
    "LossScaledOptimizer",
    "MomentumOptimizer",
    "Multiplier",
    "MuonOptimizer",
    "Optimizer",
    "OptimizerEvent",
    "OrderedSampler",
    "Outcome",
    "PassRecord",
    "RMSPropOptimizer",
    "ReferenceRuns",
    "RunnerEvent",
    "SAMOptimizer",
    "Sampler",
    "SamplerEvent",
    "SamplerEventMetric",
    "Schedule",
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
    "apply_precision",
    "check_convergence",
    "compare_trajectories",
    "default_trainer_events",
    "deterministic_mode",
    "explain_divergence",
    "find_metric",
    "load_checkpoint",
    "load_latest",
    "metric_names",
    "precise_optimizer",
    "read_reference_runs",
    "run_statistics",
    "test_optimizer",
    "test_sampler",
    "test_training",
    "work_to_target",
    "write_reference_runs",
]
