from .metric import METRICS, Direction, MetricKind, TestMetric
from .metrics.wallclock_time import WallclockTime

__all__ = ["METRICS", "Direction", "MetricKind", "TestMetric", "WallclockTime"]
