import deep500.training.events as training_events

from . import core, datasets, frameworks, measure, networks, operators, recipe, training
from ._version import __version__
from .core.device import CPUDevice, GPUDevice
from .core.errors import (
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
from .datasets.loading import load_dataset
from .datasets.numpy_dataset import NumpyDataset
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
from .training.metrics.test_accuracy import TestAccuracy
from .training.metrics.training_accuracy import TrainingAccuracy
from .training.optimizer import Optimizer, ThreeStepOptimizer, UpdateRuleOptimizer
from .training.optimizers.adam import AdamOptimizer
from .training.optimizers.gradient_descent import GradientDescent
from .training.optimizers.momentum import MomentumOptimizer
from .training.sampler import Sampler
from .training.samplers.ordered import OrderedSampler
from .training.samplers.shuffle import ShuffleSampler
from .training.statistics import TrainingStatistics
from .training.trainer import Trainer
from .training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining, TrainingEvent

__all__ = [
    "AchievedFlops",
    "AdamOptimizer",
    "CPUDevice",
    "CompileError",
    "CppOp",
    "CustomOp",
    "CustomPythonOp",
    "Dataset",
    "DatasetError",
    "Deep500Error",
    "DeviceError",
    "DiffHeatmap",
    "Energy",
    "Event",
    "ExecutorEvent",
    "FLOPs",
    "GPUDevice",
    "GradientDescent",
    "GraphExecutor",
    "InvalidInputError",
    "InvalidNetworkError",
    "L1Error",
    "L2Error",
    "Loss",
    "MaxError",
    "MissingDependencyError",
    "MomentumOptimizer",
    "NativeOp",
    "Network",
    "NetworkProfile",
    "NumpyDataset",
    "OperatorError",
    "Optimizer",
    "OptimizerEvent",
    "OrderedSampler",
    "PeakMemory",
    "PluginError",
    "RecipeError",
    "Registry",
    "RelativeError",
    "RunnerEvent",
    "Sampler",
    "SamplerEvent",
    "ShuffleSampler",
    "StopTraining",
    "TensorDescriptor",
    "TestAccuracy",
    "TestMetric",
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
    "compile_custom_cppop",
    "compile_custom_cppop_inline",
    "core",
    "create_model",
    "datasets",
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
    "training",
    "training_events",
    "validate",
]
