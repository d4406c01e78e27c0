from .comparison import Comparison, Verdict, paired_log_ratio, unpaired_log_ratio
from .diagnostics import (
    Independence,
    Normality,
    autocorrelation,
    effective_sample_size,
    independence,
    mean_interval,
    normality,
)
from .launches import NestedInterval, Spread, in_process_interval, nested_interval, spread
from .means import mean_of
from .multiple import HolmResult, ManySystems, PairOfSystems, compare_many, holm, launches_needed
from .quantiles import (
    Interval,
    IntervalRows,
    Ranks,
    order_statistic_ranks,
    quantile_interval,
    quantile_intervals,
    samples_needed,
)
from .regression import QuantileRegression, quantile_regression
from .steady_state import SteadyState, change_points, detectable_length, steady_state
from .stopping import Action, Decision, SequentialStop

__all__ = [
    "Action",
    "Comparison",
    "Decision",
    "HolmResult",
    "Independence",
    "Interval",
    "IntervalRows",
    "ManySystems",
    "NestedInterval",
    "Normality",
    "PairOfSystems",
    "QuantileRegression",
    "Ranks",
    "SequentialStop",
    "Spread",
    "SteadyState",
    "Verdict",
    "autocorrelation",
    "change_points",
    "compare_many",
    "detectable_length",
    "effective_sample_size",
    "holm",
    "in_process_interval",
    "independence",
    "launches_needed",
    "mean_interval",
    "mean_of",
    "nested_interval",
    "normality",
    "order_statistic_ranks",
    "paired_log_ratio",
    "quantile_interval",
    "quantile_intervals",
    "quantile_regression",
    "samples_needed",
    "spread",
    "steady_state",
    "unpaired_log_ratio",
]
