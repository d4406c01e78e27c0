from .clock import Stopwatch, TimerCalibration, calibrate_timer
from .environment.record import EnvironmentRecord, record_environment
from .metric import METRICS, Direction, MetricKind, TestMetric
from .metrics.wallclock_time import WallclockTime
from .region_breakdown import RegionBreakdown, RegionRow
from .regions import collect_regions, region, regions_so_far, reset_regions
from .results.comparing import compare
from .results.document import Design, Measurement, Statistic, System
from .results.summary import Basis, Summary, achieved_flops, summarise, throughput
from .sampling.benchmark import bench
from .sampling.plan import SamplingPlan
from .sampling.progress import Progress
from .workload import WORKLOADS, Score, Work, Workload, WorkloadSpec, open_workload, parse_workload

__all__ = [
    "METRICS",
    "WORKLOADS",
    "Basis",
    "Design",
    "Direction",
    "EnvironmentRecord",
    "Measurement",
    "MetricKind",
    "Progress",
    "RegionBreakdown",
    "RegionRow",
    "SamplingPlan",
    "Score",
    "Statistic",
    "Stopwatch",
    "Summary",
    "System",
    "TestMetric",
    "TimerCalibration",
    "WallclockTime",
    "Work",
    "Workload",
    "WorkloadSpec",
    "achieved_flops",
    "bench",
    "calibrate_timer",
    "collect_regions",
    "compare",
    "open_workload",
    "parse_workload",
    "record_environment",
    "region",
    "regions_so_far",
    "reset_regions",
    "summarise",
    "throughput",
]
