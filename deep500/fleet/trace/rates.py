"""How often tasks fail by the hours that they ran, and what part of the GPUs' time came to something."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from deep500.fleet.trace.observed import CENSORED, FAILED, PASSED, ObservedTrace
from deep500.fleet.trace.survival import FEWEST_CLUSTERS

__all__ = ["EFFECTIVE_TIME", "Rates", "TaskHours", "mean_time_to_failure", "rates", "task_hours"]

#: What the ratio means, and where it is from.
EFFECTIVE_TIME = (
    "Effective-training-time ratio: the GPU-hours of tasks that passed over the GPU-hours of all tasks. What a failed "
    "task did is taken as lost, since a trace does not tell of checkpoints, so that it is a lower bound; what still "
    "runs or was cancelled counts as not effective. After A. Kokolis et al., 'Revisiting Reliability in Large-Scale "
    "Machine Learning Research Clusters' (arXiv:2410.21680), without its waiting times."
)

#: Weights of so many resamples times users are held at once.
_AT_ONCE = 4_000_000

Interval = tuple[float, float]


@dataclass(frozen=True)
class TaskHours:
    """Hours of each task, in the order of the trace.

    Attributes:
        hours: For how long it was seen.
        gpu_hours: The same times its GPUs; 0 where it had none.
        unknown_gpus: The number of tasks of which nobody knows how many GPUs they had.
    """

    hours: NDArray[np.float64]
    gpu_hours: NDArray[np.float64]
    unknown_gpus: int


@dataclass(frozen=True)
class Rates:
    """Failures and hours of a group of tasks.

    Attributes:
        tasks: The number of tasks.
        failed: How many failed.
        passed: How many passed.
        censored: How many did neither while they were seen.
        users: The number of users.
        hours: The hours of all tasks together.
        mttf_h: Hours for each failure; infinite where none failed.
        mttf_exact: Its interval if failures are independent and as likely in each hour.
        mttf_users: Its interval over users, from a bootstrap; ``None`` with too few users, or no failure.
        gpu_hours: The GPU-hours of all tasks together.
        mttf_gpu_h: GPU-hours for each failure of a task with a GPU.
        mttf_gpu_exact: Its interval, as above.
        mttf_gpu_users: Its interval over users.
        passed_gpu_h: GPU-hours of tasks that passed.
        failed_gpu_h: GPU-hours of tasks that failed: lost.
        rerun_gpu_h: Of these, the hours of tasks that were begun again later.
        other_gpu_h: GPU-hours of tasks that did neither.
        effective: See :data:`EFFECTIVE_TIME`; not a number without GPUs.
        effective_users: Its interval over users.
    """

    tasks: int
    failed: int
    passed: int
    censored: int
    users: int
    hours: float
    mttf_h: float
    mttf_exact: Interval
    mttf_users: Interval | None
    gpu_hours: float
    mttf_gpu_h: float
    mttf_gpu_exact: Interval
    mttf_gpu_users: Interval | None
    passed_gpu_h: float
    failed_gpu_h: float
    rerun_gpu_h: float
    other_gpu_h: float
    effective: float
    effective_users: Interval | None


def task_hours(trace: ObservedTrace) -> TaskHours:
    """Return the hours of each task of a trace."""
    hours = trace.duration_s / 3600.0
    gpus = trace.frame["gpus"]
    return TaskHours(hours, hours * gpus.fill_null(0.0).to_numpy(), int(gpus.null_count()))


def mean_time_to_failure(total: float, failures: int, confidence: float = 0.95) -> tuple[float, Interval]:
    r"""Return the mean time to failure, total over failures, with its interval.

    If failures come at a constant rate, whatever else ends tasks,
    :math:`[2T / \chi^2_{1-\alpha/2,\, 2r+2},\; 2T / \chi^2_{\alpha/2,\, 2r}]` covers it with at least the confidence.

    Source: B. Epstein, M. Sobel, J. American Statistical Association 48 (1953); F. Garwood, Biometrika 28 (1936).

    Example:
        >>> mean_time_to_failure(100.0, 0)[0]
        inf
    """
    tail = (1 - confidence) / 2
    low = 2 * total / float(chi2.isf(tail, 2 * failures + 2))
    if not failures:
        return math.inf, (low, math.inf)
    return total / failures, (low, 2 * total / float(chi2.ppf(tail, 2 * failures)))


def rates(
    trace: ObservedTrace,
    hours: TaskHours,
    rows: NDArray[np.int64],
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Rates:
    """Return the failures and hours of some tasks of a trace.

    Args:
        trace: The trace.
        hours: The hours of its tasks.
        rows: The tasks' places.
        confidence: That of intervals.
        resamples: The number of resamples of users.
        seed: The seed of the resamples.
    """
    event, time, gpu_time = trace.event[rows], hours.hours[rows], hours.gpu_hours[rows]
    failed, passed, on_gpu = event == FAILED, event == PASSED, gpu_time > 0
    parts = (time, failed, gpu_time, failed & on_gpu, gpu_time * passed)
    present, user = np.unique(trace.user[rows], return_inverse=True)
    sums = np.stack([np.bincount(user, weights=part, minlength=len(present)) for part in parts], axis=1).astype(float)
    ends = _bootstrap(sums, confidence, resamples, seed)
    total, gpu_total = float(time.sum()), float(gpu_time.sum())
    mttf, exact = mean_time_to_failure(total, int(failed.sum()), confidence)
    mttf_gpu, gpu_exact = mean_time_to_failure(gpu_total, int(parts[3].sum()), confidence)
    passed_h, failed_h = float(parts[4].sum()), float((gpu_time * failed).sum())
    return Rates(
        tasks=len(rows),
        failed=int(failed.sum()),
        passed=int(passed.sum()),
        censored=int((event == CENSORED).sum()),
        users=len(present),
        hours=total,
        mttf_h=mttf,
        mttf_exact=exact,
        mttf_users=ends[0] if failed.any() else None,
        gpu_hours=gpu_total,
        mttf_gpu_h=mttf_gpu if gpu_total else math.nan,
        mttf_gpu_exact=gpu_exact if gpu_total else (math.nan, math.nan),
        mttf_gpu_users=ends[1] if gpu_total and parts[3].any() else None,
        passed_gpu_h=passed_h,
        failed_gpu_h=failed_h,
        rerun_gpu_h=float((gpu_time * trace.rerun[rows]).sum()),
        other_gpu_h=max(gpu_total - passed_h - failed_h, 0.0),
        effective=passed_h / gpu_total if gpu_total else math.nan,
        effective_users=ends[2] if 0 < passed_h < gpu_total else None,
    )


def _bootstrap(
    sums: NDArray[np.float64], confidence: float, resamples: int, seed: int
) -> tuple[Interval | None, Interval | None, Interval | None]:
    """Return percentiles of the three ratios over resamples of the users, each with all its tasks."""
    users = len(sums)
    if users < FEWEST_CLUSTERS:
        return None, None, None
    generator = np.random.default_rng(seed)
    drawn = np.empty((resamples, sums.shape[1]))
    step = max(1, _AT_ONCE // users)
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        chosen = generator.integers(0, users, (count, users)) + users * np.arange(count)[:, None]
        times = np.bincount(chosen.ravel(), minlength=count * users).reshape(count, users)
        drawn[begin : begin + count] = times @ sums
    pairs = ((0, 1), (2, 3), (4, 2))
    ratios = [
        np.divide(drawn[:, a], drawn[:, b], out=np.full(resamples, np.inf), where=drawn[:, b] > 0) for a, b in pairs
    ]
    tail = (1 - confidence) / 2
    ends = [np.quantile(ratio, (tail, 1 - tail), method="inverted_cdf") for ratio in ratios]
    first, second, third = ((float(low), float(high)) for low, high in ends)
    return first, second, third
