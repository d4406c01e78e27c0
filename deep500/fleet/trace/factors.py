"""What may go with success and failure: labels of tasks as numbers and as groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.core.texts import shown
from deep500.fleet.trace.observed import ObservedTrace

__all__ = ["FACTORS", "Factor", "FoundFactor", "find_factors"]

#: So many values of a number are groups of their own; more are cut at their quintiles.
_OWN_GROUPS = 6

#: So many names are groups of their own; the rest go together.
_LARGEST_GROUPS = 8


@dataclass(frozen=True)
class Factor:
    """Something that may go with success and failure.

    Attributes:
        name: What it is called in results.
        title: What it is called for people.
        columns: Labels that hold it, the first that is there counts.
        numeric: Whether it is a number.
        instead_of: A factor that says the same; this one is looked at only where that one is absent.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    numeric: bool
    instead_of: str | None = None


#: The factors that are looked for.
FACTORS = (
    Factor("gpu_type", "GPU type", ("gpu_type",), numeric=False),
    Factor("plan_gpu", "GPU percentage", ("plan_gpu",), numeric=True),
    Factor("gpus", "GPUs", ("gpus",), numeric=True, instead_of="plan_gpu"),
    Factor("plan_cpu", "CPU percentage", ("plan_cpu",), numeric=True),
    Factor("cpus", "CPUs", ("cpus", "cpu_num"), numeric=True, instead_of="plan_cpu"),
    Factor("plan_mem", "memory (GB)", ("plan_mem", "mem_per_pod_GB"), numeric=True),
    Factor("size", "task size (instances)", ("instances", "inst_num", "nodes", "node_num", "machines"), numeric=True),
    Factor("user", "user", ("user", "group"), numeric=False),
)


@dataclass(frozen=True)
class FoundFactor:
    """A factor of the tasks of one trace.

    Attributes:
        factor: Which.
        column: The label that holds it.
        values: Its numbers, not a number where it is missing; ``None`` for names.
        codes: The group of each task as a place in ``groups``; -1 where it is missing.
        groups: The names of the groups.
        missing: The number of tasks of which it is not known.
    """

    factor: Factor
    column: str
    values: NDArray[np.float64] | None
    codes: NDArray[np.int64]
    groups: tuple[str, ...]
    missing: int


def find_factors(
    trace: ObservedTrace, more: Iterable[str] = (), top: int = _LARGEST_GROUPS
) -> tuple[list[FoundFactor], dict[str, str]]:
    """Return the factors that a trace tells of, and those that it does not, with why.

    Args:
        trace: The trace.
        more: Further labels to look at.
        top: The number of names of one factor (GPU types, users) that are groups of their own.

    Raises:
        FleetError: There is no such label.
    """
    wanted = list(FACTORS)
    for name in more:
        if name not in trace.frame.columns:
            raise FleetError(f"There is no label {shown(name)}; there are {', '.join(trace.frame.columns)}.")
        if name not in {column for factor in FACTORS for column in factor.columns}:
            wanted.append(Factor(name, name, (name,), trace.frame[name].dtype.is_numeric()))
    found: dict[str, FoundFactor] = {}
    absent: dict[str, str] = {}
    for factor in wanted:
        column = next((name for name in factor.columns if name in trace.frame.columns), None)
        if factor.instead_of in found:
            continue
        if column is None:
            absent[factor.name] = f"no label {' or '.join(factor.columns)}"
            continue
        looked = _numbers(factor, column, trace) if factor.numeric else _names(factor, column, trace, top)
        if looked.missing == len(trace):
            absent[factor.name] = f"the label {column} is missing everywhere"
        else:
            found[factor.name] = looked
    return list(found.values()), absent


def _numbers(factor: Factor, column: str, trace: ObservedTrace) -> FoundFactor:
    values = trace.frame[column].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy().copy()
    values[~np.isfinite(values)] = np.nan
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    codes = np.full(len(values), -1, dtype=np.int64)
    there = np.isfinite(values)
    if len(distinct) <= _OWN_GROUPS:
        codes[there] = np.searchsorted(distinct, known)
        groups = tuple(_told_apart(distinct))
    else:
        cuts = np.unique(np.quantile(known, (0.2, 0.4, 0.6, 0.8), method="inverted_cdf"))
        cuts = cuts[cuts < distinct[-1]]
        codes[there] = np.searchsorted(cuts, known, side="left")
        edges = _told_apart(cuts)
        between = [f"over {low} to {high}" for low, high in itertools.pairwise(edges)]
        groups = (f"to {edges[0]}", *between, f"over {edges[-1]}")
    return FoundFactor(factor, column, values, codes, groups, int((~there).sum()))


def _told_apart(values: NDArray[np.float64]) -> list[str]:
    """Return texts of different numbers, with as many digits as they need to differ, four at least."""
    for digits in range(4, 18):
        texts = [
            f"{value:.{digits}g}" if abs(value) < 1e4 or abs(value) >= 1e7 else f"{value:.{max(digits, 7)}g}"
            for value in values
        ]
        if len(set(texts)) == len(texts):
            break
    return texts


def _names(factor: Factor, column: str, trace: ObservedTrace, top: int) -> FoundFactor:
    texts = trace.frame[column].cast(pl.String)
    texts = texts.set(texts == "", None)
    counted = texts.drop_nulls().alias("name").to_frame().group_by("name").len()
    ranked = counted.sort("len", "name", descending=[True, False])["name"].to_list()
    kept = ranked[:top] if len(ranked) > top + 1 else ranked
    rest = len(ranked) - len(kept)
    groups = (*kept, f"{rest:,} others") if rest else tuple(kept)
    of_name = {name: min(place, len(kept)) for place, name in enumerate(ranked)}
    codes = texts.replace_strict(of_name, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
    return FoundFactor(factor, column, None, codes, groups, int(texts.null_count()))
