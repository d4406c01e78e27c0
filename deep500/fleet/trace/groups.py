"""The groups of one factor side by side: their curves, rates, and whether they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deep500.fleet.trace.factors import FoundFactor
from deep500.fleet.trace.observed import FAILED, PASSED, ObservedTrace
from deep500.fleet.trace.rates import Rates, TaskHours, rates
from deep500.fleet.trace.survival import (
    LogRank,
    RiskTable,
    cluster_interval,
    incidence,
    incidence_at,
    kaplan_meier,
    log_rank,
    risk_table,
)
from deep500.measure.statistics import holm

__all__ = ["Curves", "FactorReport", "GroupReport", "Settings", "Share", "corrected", "factor_report", "group_report"]

#: So many points of a curve are kept, at most: the exact values at these times.
_POINTS = 160

_MERGED = np.array([0, 1, 1], dtype=np.int8)


@dataclass(frozen=True)
class Settings:
    """What intervals and curves are made with.

    Attributes:
        times_s: The times for which shares are told, in seconds.
        confidence: That of intervals.
        resamples: The number of resamples of users.
        seed: The seed of the resamples.
    """

    times_s: tuple[float, ...]
    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Share:
    """A share of tasks, with the ends of its interval over users where there are enough.

    Attributes:
        value: The share.
        low: The lower end.
        high: The upper end.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class At:
    """What has become of the tasks of a group at one time after their beginning.

    Attributes:
        time_s: The time.
        at_risk: How many tasks were seen running for longer.
        ended: The share that has ended, one way or the other.
        failed: The share that has failed, while success competes.
        passed: The share that has passed, while failure competes.
        failed_alone: One less Kaplan and Meier's estimate for failures alone: the share that would have failed if
            success did not end tasks, and tasks that succeed were no different; not a share of what happens.
    """

    time_s: float
    at_risk: int
    ended: Share
    failed: Share
    passed: Share
    failed_alone: Share


@dataclass(frozen=True)
class Curves:
    """Curves of a group at some of its times.

    Attributes:
        times_s: The times.
        running: Kaplan-Meier: the share that still runs.
        not_failed: Kaplan-Meier for failures alone.
        failed: Aalen-Johansen: the share that has failed.
        passed: Aalen-Johansen: the share that has passed.
    """

    times_s: tuple[float, ...]
    running: tuple[float, ...]
    not_failed: tuple[float, ...]
    failed: tuple[float, ...]
    passed: tuple[float, ...]


@dataclass(frozen=True)
class GroupReport:
    """The tasks of one group.

    Attributes:
        group: Its name.
        rates: Failures and hours.
        median_s: When half of the tasks have ended; ``None`` when that was not seen.
        at: What has become of them at some times: those that some were seen for, all where all were seen to their end.
        curves: The curves.
    """

    group: str
    rates: Rates
    median_s: float | None
    at: tuple[At, ...]
    curves: Curves


@dataclass(frozen=True)
class GroupTest:
    """Whether the groups of a factor end by a cause at the same rate.

    Attributes:
        test: The log-rank test.
        p_value: The p-value that counts: over users where it is known.
        adjusted_p: The same after Holm's correction for all factors and causes.
    """

    test: LogRank
    p_value: float
    adjusted_p: float


@dataclass(frozen=True)
class FactorReport:
    """One factor.

    Attributes:
        name: Its name.
        title: Its name for people.
        column: The label that holds it.
        missing: The number of tasks of which it is not known.
        groups: The groups.
        tests: The log-rank tests by cause.
    """

    name: str
    title: str
    column: str
    missing: int
    groups: tuple[GroupReport, ...]
    tests: dict[str, GroupTest]


def factor_report(trace: ObservedTrace, hours: TaskHours, found: FoundFactor, settings: Settings) -> FactorReport:
    """Return what is to be said of the groups of a factor; p-values are not corrected yet (:func:`corrected`)."""
    groups = []
    for code, name in enumerate(found.groups):
        rows = np.flatnonzero(found.codes == code)
        if len(rows):
            groups.append(group_report(trace, hours, name, rows, settings))
    known = np.flatnonzero(found.codes >= 0)
    clusters = None if found.factor.name == "user" else trace.user[known]
    tests = {}
    for cause, code in (("failed", FAILED), ("passed", PASSED)):
        test = log_rank(trace.duration_s[known], trace.event[known] == code, found.codes[known], clusters)
        if test is not None:
            p_value = test.p_value if test.robust_p_value is None else test.robust_p_value
            tests[cause] = GroupTest(test, p_value, p_value)
    return FactorReport(found.factor.name, found.factor.title, found.column, found.missing, tuple(groups), tests)


def group_report(
    trace: ObservedTrace, hours: TaskHours, name: str, rows: NDArray[np.int64], settings: Settings
) -> GroupReport:
    """Return what is to be said of some tasks, given by their places."""
    duration, event, user = trace.duration_s[rows], trace.event[rows], trace.user[rows]
    table = risk_table(duration, event)
    merged = RiskTable(table.times, table.at_risk, table.ended.sum(axis=0, keepdims=True), table.place)
    alone = RiskTable(table.times, table.at_risk, table.ended[:1], table.place)
    views = (
        (merged, _MERGED[event], 1),
        (table, event, FAILED),
        (table, event, PASSED),
        (alone, (event == FAILED).astype(np.int8), 1),
    )
    running = kaplan_meier(table)
    at = []
    for time in settings.times_s:
        if time <= duration[-1] or running.value[-1] == 0:
            shares = []
            for counts, what, cause in views:
                value, error, clusters = incidence_at(counts, what, user, cause, time)
                ends = cluster_interval(value, error, clusters, settings.confidence) or (None, None)
                shares.append(Share(value, *ends))
            at.append(At(time, int((duration > time).sum()), *shares))
    half = np.flatnonzero(running.value <= 0.5)
    median = float(running.times[half[0]]) if len(half) else None
    summary = rates(trace, hours, rows, settings.confidence, settings.resamples, settings.seed)
    return GroupReport(name, summary, median, tuple(at), _curves(table))


def _curves(table: RiskTable) -> Curves:
    """Return the curves at times that are even on a logarithmic axis."""
    times = table.times
    if len(times) > _POINTS:
        least = max(times[0], times[-1] * 1e-6, 1e-9)
        wanted = np.geomspace(least, times[-1], _POINTS)
        places = np.unique(np.searchsorted(times, wanted, side="right").clip(1) - 1)
        places[-1] = len(times) - 1
    else:
        places = np.arange(len(times))
    values = (
        kaplan_meier(table).value,
        kaplan_meier(table, (FAILED,)).value,
        incidence(table, FAILED).value,
        incidence(table, PASSED).value,
    )
    return Curves(tuple(times[places].tolist()), *(tuple(value[places].tolist()) for value in values))


def corrected(reports: Sequence[FactorReport]) -> tuple[FactorReport, ...]:
    """Return the factors with p-values corrected for all tests of all of them."""
    p_values = [test.p_value for report in reports for test in report.tests.values()]
    if not p_values:
        return tuple(reports)
    adjusted = iter(holm(p_values).adjusted.tolist())
    return tuple(
        replace(
            report,
            tests={cause: replace(test, adjusted_p=next(adjusted)) for cause, test in report.tests.items()},
        )
        for report in reports
    )
