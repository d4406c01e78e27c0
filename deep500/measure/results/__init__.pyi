from .collection import Collection, read_collection
from .comparing import compare
from .compatibility import FactorDifference, check_comparable
from .document import Design, LaunchSamples, Measurement, MetricSamples, ProcessRecord, Statistic, System, content_hash
from .files import read_comparison, read_measurement, write_comparison, write_measurement
from .merging import merge
from .overheads import Overhead, OverheadOfMany, median_overhead, overhead
from .report import ComparedSystem, ComparisonReport, ComparisonRow, ManyCompared, Source
from .summary import Basis, Summary, achieved_flops, mean, summarise, throughput

__all__ = [
    "Basis",
    "Collection",
    "ComparedSystem",
    "ComparisonReport",
    "ComparisonRow",
    "Design",
    "FactorDifference",
    "LaunchSamples",
    "ManyCompared",
    "Measurement",
    "MetricSamples",
    "Overhead",
    "OverheadOfMany",
    "ProcessRecord",
    "Source",
    "Statistic",
    "Summary",
    "System",
    "achieved_flops",
    "check_comparable",
    "compare",
    "content_hash",
    "mean",
    "median_overhead",
    "merge",
    "overhead",
    "read_collection",
    "read_comparison",
    "read_measurement",
    "summarise",
    "throughput",
    "write_comparison",
    "write_measurement",
]
