from .several_runs import run_statistics
from .trajectories import compare_trajectories
from .trajectory_report import Growth, Parting, TensorParting, Trajectory, TrajectoryReport

__all__ = [
    "Growth",
    "Parting",
    "TensorParting",
    "Trajectory",
    "TrajectoryReport",
    "compare_trajectories",
    "run_statistics",
]
