"""A trace as survival analysis sees it: how long each task was seen running, and what ended that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["CENSORED", "FAILED", "PASSED", "NothingSeenError", "ObservedTrace", "observe"]

#: What ended the time for which a task was seen: nothing that says anything about it, its failure, its success.
CENSORED, FAILED, PASSED = 0, 1, 2

#: The name of the column that holds the time for which a task was seen, in seconds.
DURATION = "__seen_s"

#: Columns that nothing else needs, of many bytes a task.
_UNUSED = ("key", "status", "cause", "submitted", "started", "ended", "cost", "__why", "__was", DURATION)


class NothingSeenError(FleetError):
    """No task of a trace was seen running."""


@dataclass(frozen=True)
class ObservedTrace:
    """The tasks of a trace that were seen running, in ascending order of how long.

    Attributes:
        frame: Their GPUs, groups and labels.
        duration_s: For how long each was seen, in seconds.
        event: What ended that: :data:`CENSORED`, :data:`FAILED` or :data:`PASSED`.
        user: The user of each, as a place in ``users``.
        users: The names of users.
        end_s: The trace's end: the last time that it tells of.
        censored: The tasks whose end was not seen, counted by why.
        left_out: The tasks that were not seen running, counted by why.
        statuses: All tasks by status.
        rerun: Whether each failed and was begun again later, for the same group.
    """

    frame: pl.DataFrame
    duration_s: NDArray[np.float64]
    event: NDArray[np.int8]
    user: NDArray[np.int64]
    users: tuple[str, ...]
    end_s: float
    censored: dict[str, int]
    left_out: dict[str, int]
    statuses: dict[str, int]
    rerun: NDArray[np.bool_]

    def __len__(self) -> int:
        """The number of tasks that were seen running."""
        return len(self.duration_s)


def observe(table: OutcomeTable) -> ObservedTrace:
    """Return what a table of outcomes tells of the time that tasks took.

    A task that passed or failed was seen to its end. All others are censored: one that still runs at the trace's end,
    one that was cancelled, ran out of time or lost its machine would have ended later, nobody knows how. A task of
    which no beginning is known, or no end although it no longer runs, is left out and counted.

    Raises:
        NothingSeenError: No task was seen running.
    """
    frame = table.frame
    times = [frame[name].max() for name in ("submitted", "started", "ended")]
    known = [float(time) for time in times if isinstance(time, (int, float))]
    end_s = max(known, default=0.0)
    runs = (pl.col("status") == "missing") & (pl.col("cause") == "running")
    why = (
        pl.when(pl.col("started").is_null())
        .then(pl.concat_str([pl.col("status").cast(pl.String), pl.lit(": no beginning is known")]))
        .when(pl.col("ended").is_null() & ~runs.fill_null(False))
        .then(pl.concat_str([pl.col("status").cast(pl.String), pl.lit(": no end is known")]))
    )
    marked = frame.with_columns(
        why.alias("__why"),
        (pl.col("ended").fill_null(end_s) - pl.col("started")).alias(DURATION),
        pl.when(runs.fill_null(False))
        .then(pl.lit("running"))
        .otherwise(pl.col("status").cast(pl.String))
        .alias("__was"),
    )
    seen = marked.filter(pl.col("__why").is_null()).sort(DURATION, maintain_order=True)
    if not seen.height:
        raise NothingSeenError(
            f"None of the {frame.height:,} outcomes has a time at which it began and one at which it ended, or still "
            "runs; times are needed to tell when tasks succeed or fail."
        )
    event = seen.select(
        pl.when(pl.col("status") == "failed").then(FAILED).when(pl.col("status") == "passed").then(PASSED)
        .otherwise(CENSORED).cast(pl.Int8)
    ).to_series().to_numpy()  # fmt: skip
    users = seen["user"] if "user" in seen.columns and seen["user"].dtype == pl.String else seen["group"]
    users = users.fill_null("(unknown)")
    names = users.unique().sort()
    codes = users.cast(pl.Enum(names)).to_physical().to_numpy()
    censored = seen.filter(~pl.col("status").is_in(["passed", "failed"]))
    return ObservedTrace(
        frame=seen.select(name for name in seen.columns if name not in _UNUSED),
        duration_s=seen[DURATION].to_numpy().astype(np.float64),
        event=event,
        user=codes.astype(np.int64),
        users=tuple(names),
        end_s=end_s,
        censored=_counted(censored["__was"]),
        left_out=_counted(marked["__why"].drop_nulls()),
        statuses=_counted(frame["status"].cast(pl.String)),
        rerun=_rerun(seen, event),
    )


def _rerun(seen: pl.DataFrame, event: NDArray[np.int8]) -> NDArray[np.bool_]:
    if seen["key"].n_unique() == seen.height:
        return np.zeros(seen.height, dtype=bool)
    later = seen.select(pl.col("started") < pl.col("started").max().over("key", "group")).to_series()
    return np.asarray(later.to_numpy() & (event == FAILED))


def _counted(values: pl.Series) -> dict[str, int]:
    counted = values.alias("value").to_frame().group_by("value").len().sort("len", "value", descending=[True, False])
    return {str(value): int(count) for value, count in counted.rows()}
