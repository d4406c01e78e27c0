from .backend import BACKENDS, Backend, SchedulerState, new_backend
from .campaign import Campaign
from .cell import Cell, DroppedCell
from .collecting import Collected, collect_campaign
from .cost import estimate_cost
from .difference import Difference, compare
from .joining import join, read_record
from .matrix import Matrix
from .package_index import PackageIndex
from .planning import plan_campaign
from .running import run_campaign

__all__ = [
    "BACKENDS",
    "Backend",
    "Campaign",
    "Cell",
    "Collected",
    "Difference",
    "DroppedCell",
    "Matrix",
    "PackageIndex",
    "SchedulerState",
    "collect_campaign",
    "compare",
    "estimate_cost",
    "join",
    "new_backend",
    "plan_campaign",
    "read_record",
    "run_campaign",
]
