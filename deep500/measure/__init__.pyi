from .clock import Stopwatch, TimerCalibration, calibrate_timer
from .environment.record import EnvironmentRecord, record_environment
from .metric import METRICS, Direction, MetricKind, TestMetric
from .metric_test import MetricValue, measure_metrics
from .metrics.achieved_flops import AchievedFlops
from .metrics.diff_heatmap import DiffHeatmap
from .metrics.energy import Energy
from .metrics.flops import FLOPs
from .metrics.l1_error import L1Error
from .metrics.l2_error import L2Error
from .metrics.max_error import MaxError
from .metrics.peak_memory import PeakMemory
from .metrics.relative_error import RelativeError
from .metrics.throughput import Throughput
from .metrics.var_heatmap import VarHeatmap
from .metrics.wallclock_time import WallclockTime
from .peak import Peak, Roofline, measured_peak, roofline
from .picture import PICTURES, draw
from .region_breakdown import RegionBreakdown, RegionRow
from .regions import collect_regions, region, regions_so_far, reset_regions
from .results.comparing import compare
from .results.compatibility import FactorDifference, check_comparable
from .results.document import Design, Measurement, Statistic, System
from .results.files import read_comparison, read_measurement, write_comparison, write_measurement
from .results.merging import merge
from .results.report import ComparisonReport
from .results.summary import Basis, Summary, achieved_flops, summarise, throughput
from .rule import RULES, Finding, Rule, RuleVerdict, check_rules, read_document
from .sampling.benchmark import bench
from .sampling.plan import SamplingPlan
from .sampling.progress import Progress
from .tolerance import Tolerance, Violation, is_close, largest_violation, unit_roundoff
from .workload import WORKLOADS, Score, Work, Workload, WorkloadSpec, open_workload, parse_workload

__all__ = [
    "METRICS",
    "PICTURES",
    "RULES",
    "WORKLOADS",
    "AchievedFlops",
    "Basis",
    "ComparisonReport",
    "Design",
    "DiffHeatmap",
    "Direction",
    "Energy",
    "EnvironmentRecord",
    "FLOPs",
    "FactorDifference",
    "Finding",
    "L1Error",
    "L2Error",
    "MaxError",
    "Measurement",
    "MetricKind",
    "MetricValue",
    "Peak",
    "PeakMemory",
    "Progress",
    "RegionBreakdown",
    "RegionRow",
    "RelativeError",
    "Roofline",
    "Rule",
    "RuleVerdict",
    "SamplingPlan",
    "Score",
    "Statistic",
    "Stopwatch",
    "Summary",
    "System",
    "TestMetric",
    "Throughput",
    "TimerCalibration",
    "Tolerance",
    "VarHeatmap",
    "Violation",
    "WallclockTime",
    "Work",
    "Workload",
    "WorkloadSpec",
    "achieved_flops",
    "bench",
    "calibrate_timer",
    "check_comparable",
    "check_rules",
    "collect_regions",
    "compare",
    "draw",
    "is_close",
    "largest_violation",
    "measure_metrics",
    "measured_peak",
    "merge",
    "open_workload",
    "parse_workload",
    "read_comparison",
    "read_document",
    "read_measurement",
    "record_environment",
    "region",
    "regions_so_far",
    "reset_regions",
    "roofline",
    "summarise",
    "throughput",
    "unit_roundoff",
    "write_comparison",
    "write_measurement",
]
