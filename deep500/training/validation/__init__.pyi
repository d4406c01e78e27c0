from .convergence import ConvergenceCheck, ConvergenceVerdict, check_convergence, work_to_target
from .optimizer_check import test_optimizer
from .reference_runs import ReferenceRuns, read_reference_runs, write_reference_runs
from .report import CheckReport, OptimizerReport, ParameterCheck, SamplerReport, TrainingReport
from .sampler_check import test_sampler
from .several_runs import run_statistics
from .training_check import test_training
from .trajectories import compare_trajectories
from .trajectory_report import Growth, Parting, TensorParting, Trajectory, TrajectoryReport

__all__ = [
    "CheckReport",
    "ConvergenceCheck",
    "ConvergenceVerdict",
    "Growth",
    "OptimizerReport",
    "ParameterCheck",
    "Parting",
    "ReferenceRuns",
    "SamplerReport",
    "TensorParting",
    "TrainingReport",
    "Trajectory",
    "TrajectoryReport",
    "check_convergence",
    "compare_trajectories",
    "read_reference_runs",
    "run_statistics",
    "test_optimizer",
    "test_sampler",
    "test_training",
    "work_to_target",
    "write_reference_runs",
]
