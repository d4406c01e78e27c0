"""The view of seed 004: mean run times of groups and Pearson's correlation with them, as it was published.

It is here to be compared with: what is wrong with it is said beside (:data:`FLAWS`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.stats import pearsonr

from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.trace.factors import FACTORS
from deep500.measure.statistics import holm

__all__ = ["FLAWS", "ClassicCorrelation", "ClassicGroup", "ClassicTable", "ClassicView", "classic_view"]

#: What is wrong with it.
FLAWS = (
    "Everything that did not pass counts as failed, tasks that still run or were cancelled as well; a mean of times "
    "that were not seen to their end is too short, and longest tasks are cut off most often.",
    "Pearson's r is that of the groups' means, each group counting the same whatever its size: it says nothing of "
    "single tasks, and is mostly larger (ecological correlation).",
    "A cut such as 'less than 20,000 s' chooses by the outcome, which makes a correlation by itself or hides one.",
    "Each p-value takes groups as independent and stands alone; the column beside corrects for their number (Holm).",
    "Only times are compared, never how often tasks fail: a group may fail fast because it fails seldom.",
)

#: What the seed shows of each outcome: the factor, the cut in seconds, and whether the axis of values is logarithmic.
_SHOWN: dict[str, tuple[tuple[str, float | None, bool], ...]] = {
    "passed": (
        ("plan_gpu", None, False),
        ("plan_cpu", None, False),
        ("plan_cpu", 20_000.0, False),
        ("plan_mem", None, True),
        ("plan_mem", 100_000.0, True),
        ("size", None, False),
    ),
    "failed": (
        ("plan_gpu", None, False),
        ("plan_cpu", None, True),
        ("plan_cpu", 50_000.0, True),
        ("plan_mem", None, False),
        ("plan_mem", 20_000.0, False),
        ("size", None, False),
    ),
}


@dataclass(frozen=True)
class ClassicGroup:
    """The tasks with one value of a factor.

    Attributes:
        value: The value.
        mean_s: The mean of their run times in seconds.
        tasks: Their number.
    """

    value: float | str
    mean_s: float
    tasks: int


@dataclass(frozen=True)
class ClassicCorrelation:
    """Pearson's correlation of a factor with the groups' means.

    Attributes:
        outcome: ``passed``, or ``failed`` for all others.
        factor: The factor.
        cut_s: Only tasks of fewer seconds are in it.
        logarithmic: Whether the picture's axis of values is.
        r: The correlation; ``None`` with fewer than two groups, means that are all the same, or values too
            large to be squared.
        p_value: Its p-value, with three groups or more.
        adjusted_p: The same after Holm's correction for all of the view.
        groups: The groups.
    """

    outcome: str
    factor: str
    cut_s: float | None
    logarithmic: bool
    r: float | None
    p_value: float | None
    adjusted_p: float | None
    groups: tuple[ClassicGroup, ...]


@dataclass(frozen=True)
class ClassicTable:
    """Mean run times by GPU type.

    Attributes:
        outcome: ``passed``, or ``failed`` for all others.
        groups: The types.
    """

    outcome: str
    groups: tuple[ClassicGroup, ...]


@dataclass(frozen=True)
class ClassicView:
    """The seed's tables and correlations.

    Attributes:
        tasks: How many tasks have a run time, by outcome.
        without_time: How many have none, by outcome; they are in nothing of this.
        counted_as_failed: The statuses that count as failed, with their tasks that have a run time.
        correlations: The correlations.
        tables: The tables.
        absent: Factors that are not there.
        flaws: What is wrong with the view.
    """

    tasks: dict[str, int]
    without_time: dict[str, int]
    counted_as_failed: dict[str, int]
    correlations: tuple[ClassicCorrelation, ...]
    tables: tuple[ClassicTable, ...]
    absent: tuple[str, ...]
    flaws: tuple[str, ...] = FLAWS


def classic_view(table: OutcomeTable) -> ClassicView:
    """Return what seed 004 makes of a trace.

    A task's run time is from the earliest start of its instances to their latest end, where the trace tells of
    instances, else from its own start to its own end.
    """
    labels = {column for factor in FACTORS for column in factor.columns}
    used = {"status", "started", "ended", "instances_started", "instances_ended", *labels}
    frame = table.frame.select(name for name in table.frame.columns if name in used)
    runtime = pl.col("ended") - pl.col("started")
    if {"instances_started", "instances_ended"} <= set(frame.columns):
        runtime = pl.coalesce(pl.col("instances_ended") - pl.col("instances_started"), runtime)
    passes = pl.when(pl.col("status") == "passed").then(pl.lit("passed")).otherwise(pl.lit("failed"))
    marked = frame.with_columns(runtime.alias("__runtime"), passes.alias("__outcome"))
    timed = marked.filter(pl.col("__runtime") >= 0)
    columns = {factor.name: next((c for c in factor.columns if c in frame.columns), None) for factor in FACTORS}
    found, tables = [], []
    for outcome, shown in _SHOWN.items():
        mine = timed.filter(pl.col("__outcome") == outcome)
        for name, cut, logarithmic in shown:
            column = columns[name]
            if column is not None:
                rows = mine if cut is None else mine.filter(pl.col("__runtime") < cut)
                found.append(_correlation(outcome, name, cut, logarithmic, _groups(rows, column, pl.Float64)))
        types = columns["gpu_type"]
        if types is not None:
            tables.append(ClassicTable(outcome, _groups(mine, types, pl.String)))
    needed = ("plan_gpu", "plan_cpu", "plan_mem", "size", "gpu_type")
    outcomes = ("passed", "failed")
    others = timed.filter(pl.col("__outcome") == "failed").group_by("status").len().sort("status")
    return ClassicView(
        tasks={name: timed.filter(pl.col("__outcome") == name).height for name in outcomes},
        without_time={
            name: marked.filter(pl.col("__outcome") == name).height - timed.filter(pl.col("__outcome") == name).height
            for name in outcomes
        },
        counted_as_failed={str(status): int(count) for status, count in others.rows()},
        correlations=_corrected(found),
        tables=tuple(tables),
        absent=tuple(name for name in needed if columns[name] is None),
    )


def _groups(rows: pl.DataFrame, column: str, dtype: type[pl.DataType]) -> tuple[ClassicGroup, ...]:
    values = pl.col(column).cast(dtype, strict=False)
    values = pl.when(values != "" if dtype == pl.String else values.is_finite()).then(values)
    grouped = (
        rows.select(values.alias("value"), "__runtime")
        .drop_nulls()
        .group_by("value")
        .agg(pl.col("__runtime").mean().alias("mean"), pl.len().alias("tasks"))
        .sort("value")
    )
    return tuple(ClassicGroup(value, float(mean), int(tasks)) for value, mean, tasks in grouped.rows())


def _correlation(
    outcome: str, factor: str, cut: float | None, logarithmic: bool, groups: tuple[ClassicGroup, ...]
) -> ClassicCorrelation:
    x, y = np.array([group.value for group in groups], dtype=float), np.array([group.mean_s for group in groups])
    r = p = None
    if len(groups) >= 2 and y.std() > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            result = pearsonr(x, y)
        if np.isfinite(result.statistic):
            r, p = float(result.statistic), float(result.pvalue) if len(groups) >= 3 else None
    return ClassicCorrelation(outcome, factor, cut, logarithmic, r, p, None, groups)


def _corrected(found: list[ClassicCorrelation]) -> tuple[ClassicCorrelation, ...]:
    p_values = [result.p_value for result in found if result.p_value is not None]
    if not p_values:
        return tuple(found)
    adjusted = iter(holm(p_values).adjusted.tolist())
    return tuple(result if result.p_value is None else replace(result, adjusted_p=next(adjusted)) for result in found)
