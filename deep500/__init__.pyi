import deep500.training.events as training_events

from . import core, datasets, distributed, frameworks, measure, networks, operators, recipe, training
from ._version import __version__
from .core.device import CPUDevice, GPUDevice
from .core.errors import (
    CheckpointError,
    CommunicationError,
    CompileError,
    DatasetError,
    Deep500Error,
    DeviceError,
    InvalidInputError,
    InvalidNetworkError,
    MissingDependencyError,
    OperatorError,
    PluginError,
    RecipeError,
    TrainingError,
    UnknownNameError,
    UnsupportedOperatorError,
)
from .core.event import Event
from .core.registry import Registry
from .core.tensor_descriptor import TensorDescriptor, tensordesc
from .datasets.dataset import Dataset
from .datasets.decoding import ImageDecoder
from .datasets.file_list_dataset import FileListDataset
from .datasets.loading import load_dataset
from .datasets.numpy_dataset import NumpyDataset
from .datasets.text_dataset import TextDataset
from .distributed.communication import CommunicationNetwork
from .distributed.distributed_optimizer import DistributedOptimizer
from .distributed.launch_environment import create_communicator
from .distributed.metrics.communication_volume import CommunicationVolume
from .distributed.samplers.distributed_sampler import DistributedSampler
from .distributed.samplers.partitioned_distributed_sampler import PartitionedDistributedSampler
from .distributed.scheme import Scheme
from .measure.metric import TestMetric
from .measure.metrics.achieved_flops import AchievedFlops
from .measure.metrics.diff_heatmap import DiffHeatmap
from .measure.metrics.energy import Energy
from .measure.metrics.flops import FLOPs
from .measure.metrics.l1_error import L1Error
from .measure.metrics.l2_error import L2Error
from .measure.metrics.max_error import MaxError
from .measure.metrics.peak_memory import PeakMemory
from .measure.metrics.relative_error import RelativeError
from .measure.metrics.throughput import Throughput
from .measure.metrics.var_heatmap import VarHeatmap
from .measure.metrics.wallclock_time import WallclockTime
from .networks.creation import create_model
from .networks.custom_node import call_custom_op
from .networks.executor_event import ExecutorEvent
from .networks.graph_executor import GraphExecutor
from .networks.loss import Loss
from .networks.network import Network
from .networks.profiling.profile import profile
from .networks.profiling.report import NetworkProfile
from .networks.validation.executor_tests import test_executor_backprop, test_executor_inference
from .networks.validation.ladder import validate
from .operators.custom.catalogue import find_custom_op, register_custom_op
from .operators.custom.compiling import compile_custom_cppop, compile_custom_cppop_inline
from .operators.custom.cpp_op import CppOp
from .operators.custom.custom_op import CustomOp, CustomPythonOp
from .operators.custom.native_op import NativeOp
from .operators.validation.equivalence import test_op_equivalence
from .operators.validation.forward import test_op_forward
from .operators.validation.gradient import test_op_gradient
from .recipe.runner import run_recipe
from .training.determinism import deterministic_mode
from .training.events.checkpoint import CheckpointEvent
from .training.input_pipeline import InputPipeline
from .training.metrics.bits_per_byte import BitsPerByte
from .training.metrics.dataset_bias import DatasetBias
from .training.metrics.sampler_event_metric import SamplerEventMetric
from .training.metrics.test_accuracy import TestAccuracy
from .training.metrics.test_loss import TestLoss
from .training.metrics.training_accuracy import TrainingAccuracy
from .training.optimizer import Optimizer, ThreeStepOptimizer, UpdateRuleOptimizer
from .training.optimizers.accelegrad import AcceleGradOptimizer
from .training.optimizers.adagrad import AdaGradOptimizer
from .training.optimizers.adam import AdamOptimizer
from .training.optimizers.adamw import AdamWOptimizer
from .training.optimizers.amsgrad import AMSGradOptimizer
from .training.optimizers.gradient_descent import GradientDescent
from .training.optimizers.lamb import LAMBOptimizer
from .training.optimizers.lars import LARSOptimizer
from .training.optimizers.lbfgs import LBFGSOptimizer
from .training.optimizers.lion import LionOptimizer
from .training.optimizers.momentum import MomentumOptimizer
from .training.optimizers.muon import MuonOptimizer
from .training.optimizers.rmsprop import RMSPropOptimizer
from .training.optimizers.sam import SAMOptimizer
from .training.parameter_groups import Multiplier
from .training.sampler import Sampler
from .training.samplers.bucket import BucketSampler
from .training.samplers.choice import ChoiceSampler
from .training.samplers.ordered import OrderedSampler
from .training.samplers.shuffle import ShuffleSampler
from .training.samplers.stratified import StratifiedSampler
from .training.statistics import TrainingStatistics
from .training.trainer import Trainer
from .training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining, TrainingEvent
from .training.validation.optimizer_check import test_optimizer
from .training.validation.sampler_check import test_sampler
from .training.validation.training_check import test_training
from .training.validation.trajectories import compare_trajectories

__all__ = [
    "AMSGradOptimizer",
    "AcceleGradOptimizer",
    "AchievedFlops",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "BitsPerByte",
    "BucketSampler",
    "CPUDevice",
    "CheckpointError",
    "CheckpointEvent",
    "ChoiceSampler",
    "CommunicationError",
    "CommunicationNetwork",
    "CommunicationVolume",
    "CompileError",
    "CppOp",
    "CustomOp",
    "CustomPythonOp",
    "Dataset",
    "DatasetBias",
    "DatasetError",
    "Deep500Error",
    "DeviceError",
    "DiffHeatmap",
    "DistributedOptimizer",
    "DistributedSampler",
    "Energy",
    "Event",
    "ExecutorEvent",
    "FLOPs",
    "FileListDataset",
    "GPUDevice",
    "GradientDescent",
    "GraphExecutor",
    "ImageDecoder",
    "InputPipeline",
    "InvalidInputError",
    "InvalidNetworkError",
    "L1Error",
    "L2Error",
    "LAMBOptimizer",
    "LARSOptimizer",
    "LBFGSOptimizer",
    "LionOptimizer",
    "Loss",
    "MaxError",
    "MissingDependencyError",
    "MomentumOptimizer",
    "Multiplier",
    "MuonOptimizer",
    "NativeOp",
    "Network",
    "NetworkProfile",
    "NumpyDataset",
    "OperatorError",
    "Optimizer",
    "OptimizerEvent",
    "OrderedSampler",
    "PartitionedDistributedSampler",
    "PeakMemory",
    "PluginError",
    "RMSPropOptimizer",
    "RecipeError",
    "Registry",
    "RelativeError",
    "RunnerEvent",
    "SAMOptimizer",
    "Sampler",
    "SamplerEvent",
    "SamplerEventMetric",
    "Scheme",
    "ShuffleSampler",
    "StopTraining",
    "StratifiedSampler",
    "TensorDescriptor",
    "TestAccuracy",
    "TestLoss",
    "TestMetric",
    "TextDataset",
    "ThreeStepOptimizer",
    "Throughput",
    "Trainer",
    "TrainingAccuracy",
    "TrainingError",
    "TrainingEvent",
    "TrainingStatistics",
    "UnknownNameError",
    "UnsupportedOperatorError",
    "UpdateRuleOptimizer",
    "VarHeatmap",
    "WallclockTime",
    "__version__",
    "call_custom_op",
    "compare_trajectories",
    "compile_custom_cppop",
    "compile_custom_cppop_inline",
    "core",
    "create_communicator",
    "create_model",
    "datasets",
    "deterministic_mode",
    "distributed",
    "find_custom_op",
    "frameworks",
    "load_dataset",
    "measure",
    "networks",
    "operators",
    "profile",
    "recipe",
    "register_custom_op",
    "run_recipe",
    "tensordesc",
    "test_executor_backprop",
    "test_executor_inference",
    "test_op_equivalence",
    "test_op_forward",
    "test_op_gradient",
    "test_optimizer",
    "test_sampler",
    "test_training",
    "training",
    "training_events",
    "validate",
]
