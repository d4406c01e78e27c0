"""A history: what came of each job at each commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import shown
from deep500.fleet.ci._job_names import BUILDS, TESTS, stem, subject
from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["MERGES", "ORDERS", "VIEWS", "History", "history_of"]

#: How jobs are merged, which are taken, and in which order commits stand.
MERGES = ("none", "seed")
VIEWS = ("all", "builds", "tests")
ORDERS = ("time", "file", "reversed")


@dataclass(frozen=True)
class History:
    """What came of J jobs at C commits.

    Attributes:
        commits: The commits, from the oldest to the newest.
        jobs: The jobs, by name.
        results: The last result of each job at each commit, [C, J]: 1 passed, 0 failed, NaN otherwise.
        failures: Which cells failed and have no rerun that passed, [C, J]: failures that are to be found.
        flaky: Which cells have results that differ, [C, J].
        reruns: Which cells have more than one result, [C, J].
        costs: The mean cost of a run in each cell, [C, J]; NaN where nothing ran or the cost is unknown.
        order: How the commits were ordered, one of :data:`ORDERS`.
        notes: What was decided on the way, in sentences.
    """

    commits: tuple[str, ...]
    jobs: tuple[str, ...]
    results: NDArray[np.float32]
    failures: NDArray[np.bool_]
    flaky: NDArray[np.bool_]
    reruns: NDArray[np.bool_]
    costs: NDArray[np.float64]
    order: str = "file"
    notes: tuple[str, ...] = ()

    def rows(self, start: int, stop: int) -> History:
        """Return the commits from one place to before another."""
        part = slice(start, stop)
        return replace(self, commits=self.commits[part], **{name: getattr(self, name)[part] for name in _MATRICES})

    def columns(self, places: Sequence[int]) -> History:
        """Return some of the jobs."""
        chosen = np.asarray(places, dtype=np.intp)
        jobs = tuple(self.jobs[place] for place in chosen)
        return replace(self, jobs=jobs, **{name: getattr(self, name)[:, chosen] for name in _MATRICES})

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which cells have a result, [C, J]."""
        return ~np.isnan(self.results)

    def flaky_rates(self) -> NDArray[np.float64]:
        """Return of each job the share of commits with a result at which results differ, [J]; NaN without results."""
        count = self.judged.sum(0)
        rates = np.full(len(self.jobs), np.nan)
        np.divide(self.flaky.sum(0), count, out=rates, where=count > 0)
        return rates

    def to_dict(self) -> dict[str, Any]:
        """Return how much there is, as what JSON can hold."""
        judged = int(self.judged.sum())
        cells = len(self.commits) * len(self.jobs)
        return {
            "commits": len(self.commits),
            "jobs": len(self.jobs),
            "order": self.order,
            "results": judged,
            "missing_share": 1 - judged / cells if cells else None,
            "failed": int((self.results == 0).sum()),
            "failures_to_find": int(self.failures.sum()),
            "rerun": int(self.reruns.sum()),
            "flaky": int(self.flaky.sum()),
            "notes": list(self.notes),
        }


_MATRICES = ("results", "failures", "flaky", "reruns", "costs")


def history_of(
    table: OutcomeTable,
    *,
    merge: str = "none",
    only: str = "all",
    order: str = "time",
    latest: bool = False,
    build_patterns: Sequence[str] = BUILDS,
    test_patterns: Sequence[str] = TESTS,
) -> History:
    """Return the history of a table: a row for each group (commit), a column for each key (job).

    Only ``passed`` and ``failed`` are results. Several results of a job at a commit are reruns: the last counts (by
    time where each of them has one, else in the order of the table), and where they differ the job was flaky there.
    A failure with a rerun that passed is none that is to be found.

    Args:
        table: The outcomes.
        merge: ``seed`` cuts the ends of names as the study of 2019 does (``_build``, ``_test``, ``_multigpu``, ...)
            and merges the jobs that are then of one name: failed where any of them failed.
        only: ``builds`` and ``tests`` take those by name. A test whose build failed is missing at that commit.
        order: ``time`` orders commits by the earliest time of any outcome (submitted, else started, else ended), and
            as the table does where some commit has none; ``file`` and ``reversed`` do as the table does.
        latest: Take only jobs that the last commit ran, as the study does.
        build_patterns: What names of builds look like.
        test_patterns: What names of tests look like.

    Raises:
        FleetError: An option is none, or no job is left.
    """
    for what, value, known in (("merge", merge, MERGES), ("only", only, VIEWS), ("order", order, ORDERS)):
        if value not in known:
            raise FleetError(f"{what} is {shown(value)}.{near_miss(value, known)} Accepted: {', '.join(known)}.")
    history, last_jobs = _whole(table.frame, order)
    if only != "all":
        history = _view(history, only, build_patterns, test_patterns)
    if latest:
        kept = [place for place, job in enumerate(history.jobs) if job in last_jobs]
        if len(kept) < len(history.jobs):
            left = f"Jobs that the last commit did not run, which were left out: {len(history.jobs) - len(kept)}."
            history = replace(history.columns(kept), notes=(*history.notes, left))
    if merge == "seed":
        history = _merged(history)
    if not history.jobs:
        raise FleetError("No job is left of the history; take more of it (--only all, without --latest).")
    return history


def _whole(frame: pl.DataFrame, order: str) -> tuple[History, set[str]]:
    """Return the history of all jobs, and the jobs of the last commit whatever came of them."""
    numbered = frame.with_row_index("_row")
    commits, used = _commits(numbered, order)
    jobs = sorted(numbered["key"].unique().to_list())
    last_jobs = set(numbered.filter(pl.col("group") == commits[-1])["key"].to_list())
    cells = _cells(numbered, used)
    places = (_places(cells["group"], commits), _places(cells["key"], jobs))
    shape = (len(commits), len(jobs))

    def filled(column: str, empty: Any, dtype: Any) -> NDArray[Any]:
        matrix = np.full(shape, empty, dtype=dtype)
        matrix[places] = cells[column].to_numpy()
        return matrix

    notes = []
    if used != order:
        notes.append("Some commits have no time; commits stand in the order of the files.")
    history = History(
        commits=tuple(commits),
        jobs=tuple(jobs),
        results=filled("passed", np.nan, np.float32),
        failures=filled("failure", False, np.bool_),
        flaky=filled("flaky", False, np.bool_),
        reruns=filled("rerun", False, np.bool_),
        costs=filled("cost", np.nan, np.float64),
        order=used,
        notes=tuple(notes),
    )
    return history, last_jobs


def _commits(numbered: pl.DataFrame, order: str) -> tuple[list[str], str]:
    """Return the commits in their order, and which order it is."""
    first = numbered.group_by("group").agg(
        pl.col("_row").min(), pl.coalesce("submitted", "started", "ended").min().alias("_time")
    )
    if order == "time" and first["_time"].null_count():
        order = "file"
    by = ["_time", "_row"] if order == "time" else ["_row"]
    return first.sort(by, descending=order == "reversed")["group"].to_list(), order


def _cells(numbered: pl.DataFrame, order: str) -> pl.DataFrame:
    """Return a row for each job and commit with a result.

    All that is asked of a cell is a sum, a mean, the least, the first or the last: other expressions run group by
    group, and there are millions of groups.
    """
    cell = ["group", "key"]
    judged = numbered.filter(pl.col("status").is_in(["passed", "failed"])).with_columns(
        (pl.col("status") == "passed").alias("_passed"),
        pl.coalesce("started", "submitted", "ended").alias("_when"),
        pl.when(pl.col("cost") >= 0).then(pl.col("cost")).alias("_cost"),
    )
    if judged["_when"].null_count():
        untimed = pl.col("_when").is_null().any().over(cell)
        judged = judged.with_columns(pl.when(untimed).then(None).otherwise(pl.col("_when")).alias("_when"))
    passed = pl.col("_passed")
    return (
        judged.sort("_when", "_row", descending=[False, order == "reversed"])
        .group_by(cell, maintain_order=True)
        .agg(
            passed.last().cast(pl.Float32).alias("passed"),
            (passed.sum() == passed.first().cast(pl.UInt32)).alias("_no_rerun_passed"),
            (passed.min() != passed.max()).alias("flaky"),
            (pl.len() > 1).alias("rerun"),
            pl.col("_cost").mean().fill_null(float("nan")).alias("cost"),
        )
        .with_columns(((pl.col("passed") == 0) & pl.col("_no_rerun_passed")).alias("failure"))
    )


def _places(values: pl.Series, names: Sequence[str]) -> NDArray[np.intp]:
    known = pl.DataFrame({"name": names, "place": np.arange(len(names))})
    joined = values.to_frame("name").join(known, on="name", how="left", maintain_order="left")
    return joined["place"].to_numpy().astype(np.intp)


def _view(history: History, only: str, builds: Sequence[str], tests: Sequence[str]) -> History:
    """Return the builds, or the tests without results where their build failed."""

    def of_kind(patterns: Sequence[str]) -> list[int]:
        return [n for n, job in enumerate(history.jobs) if any(fnmatchcase(job, pattern) for pattern in patterns)]

    wanted = of_kind(builds if only == "builds" else tests)
    if not wanted:
        patterns = ", ".join(builds if only == "builds" else tests)
        raise FleetError(
            f"None of the {len(history.jobs)} jobs, such as {shown(history.jobs[0])}, is one of the {only}: "
            f"their names match {patterns}. Name other patterns, or take all jobs."
        )
    part = history.columns(wanted)
    if only == "builds":
        return part
    broken: dict[str, NDArray[np.bool_]] = {}
    for place in of_kind(builds):
        name = subject(history.jobs[place])
        failed = history.results[:, place] == 0
        broken[name] = broken[name] | failed if name in broken else failed
    unbuilt = np.zeros(part.results.shape, dtype=np.bool_)
    for place, job in enumerate(part.jobs):
        if subject(job) in broken:
            unbuilt[:, place] = broken[subject(job)]
    hidden = int((unbuilt & part.judged).sum())
    note = f"Results of tests taken as missing since their build failed at that commit: {hidden}."
    return replace(
        part,
        results=np.where(unbuilt, np.float32(np.nan), part.results),
        failures=part.failures & ~unbuilt,
        flaky=part.flaky & ~unbuilt,
        reruns=part.reruns & ~unbuilt,
        costs=np.where(unbuilt, np.nan, part.costs),
        notes=(*part.notes, note),
    )


def _merged(history: History) -> History:
    """Return the jobs merged by stem: failed where any failed, the costs together."""
    members: dict[str, list[int]] = {}
    for place, job in enumerate(history.jobs):
        members.setdefault(stem(job), []).append(place)
    jobs = sorted(members)
    groups = [members[job] for job in jobs]
    judged = history.judged

    def anywhere(matrix: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.stack([matrix[:, group].any(1) for group in groups], axis=1)

    known, failed = anywhere(judged), anywhere(history.results == 0)
    results = np.where(known, np.where(failed, 0.0, 1.0), np.nan).astype(np.float32)
    costs = np.stack([np.nansum(history.costs[:, group], axis=1) for group in groups], axis=1)
    costs[~anywhere(~np.isnan(history.costs))] = np.nan
    note = f"Jobs after merging by the ends of their names: {len(jobs)} of {len(history.jobs)}."
    return replace(
        history,
        jobs=tuple(jobs),
        results=results,
        failures=anywhere(history.failures),
        flaky=anywhere(history.flaky),
        reruns=anywhere(history.reruns),
        costs=costs,
        notes=(*history.notes, note),
    )
