from .benchmark import bench
from .plan import SamplingPlan
from .progress import Progress

__all__ = ["Progress", "SamplingPlan", "bench"]
