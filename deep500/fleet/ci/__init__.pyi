from .clustering import Clustering, cluster_rows
from .correlating import Correlation, correlate, phi_matrix
from .evaluating import Evaluation
from .generating import PlantedHistory, generate_history
from .history import History, history_of
from .newly_failing import newly_failing
from .reducing import reduce_jobs
from .reduction import Reduction, ReductionPlan
from .selection import Choice, CoverageProblem, choose_exactly, choose_greedily, choose_in_layers

__all__ = [
    "Choice",
    "Clustering",
    "Correlation",
    "CoverageProblem",
    "Evaluation",
    "History",
    "PlantedHistory",
    "Reduction",
    "ReductionPlan",
    "choose_exactly",
    "choose_greedily",
    "choose_in_layers",
    "cluster_rows",
    "correlate",
    "generate_history",
    "history_of",
    "newly_failing",
    "phi_matrix",
    "reduce_jobs",
]
