"""Traces of which the truth is known, in the layout of Alibaba's PAI tables: to prove the estimators.

The tables are made and written in pieces, so that a trace of a million jobs needs no more memory than one of a hundred
thousand.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import FileWriteError, FleetError
from deep500.core.signals import signals_deferred
from deep500.core.texts import shown_path
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.trace.hazards import EFFECTS, REFERENCE, TYPE_SHARES, CauseHazard, Hazards, positive_stable

__all__ = ["CauseHazard", "Hazards", "generate_outcomes", "generate_trace"]

#: The files that are written, in the order of the generator's frames.
FILES = ("pai_job_table.csv", "pai_task_table.csv", "pai_instance_table.csv")
TRUTH_FILE = "truth.json"

#: So many jobs are made at once.
_PIECE = 100_000

#: More jobs would be more than 40 GB of tables, more users more than a gigabyte of memory.
_MOST_JOBS, _MOST_USERS = 100_000_000, 10_000_000

#: Instances of one job: from 2 on, at most the largest of seed 004; the tail of a Pareto distribution of this index.
_FEWEST, _MOST, _TAIL = 2, 6330, 1.75

#: Shares of jobs with one, two and three tasks.
_TASKS = (0.85, 0.12, 0.03)

_GPU_PERCENT = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 80, 90, 100, 200, 400, 800)
_GPU_SHARES = (0.03, 0.08, 0.02, 0.04, 0.16, 0.04, 0.03, 0.2, 0.03, 0.02, 0.02, 0.02, 0.24, 0.04, 0.02, 0.01)

#: Statuses of the PAI tables.
PASSED, FAILED, RUNNING, CANCELLED = "Terminated", "Failed", "Running", "Interrupted"
_STATUSES = np.array([PASSED, FAILED, RUNNING, CANCELLED])

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Users:
    names: NDArray[Any]
    shares: Floats
    types: Ints
    cpu_shift: Floats
    failing: Floats
    passing: Floats


@dataclass(frozen=True)
class _Tasks:
    """Tasks of one piece; the jobs of a piece are numbered from 0, tasks ascend by job."""

    job: Ints
    number: Ints
    user: Ints
    types: Ints
    size: Ints
    plans: dict[str, Floats]
    start: Ints
    run: Ints
    status: Ints


def generate_trace(
    folder: str | PathLike[str],
    jobs: int,
    seed: int = 0,
    hazards: Hazards | None = None,
    users: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Write the tables of a trace (jobs, tasks, instances) and the truth about it: all of it, or nothing.

    Args:
        folder: Where to write; it is made where it is not there.
        jobs: The number of jobs.
        seed: What everything random comes from: the same seed gives the same files.
        hazards: The rates at which tasks fail and succeed.
        users: The number of users; by default one for 40 jobs, from 5 to 1,242.
        tell: Is told how far it is.

    Returns:
        The truth, as it stands in ``truth.json`` beside the tables.

    Raises:
        FleetError: A number is not accepted, or the folder holds a trace.
        FileWriteError: A file cannot be written.
    """
    hazards = hazards or Hazards()
    jobs, seed, count = _checked(jobs, seed, users)
    if not str(folder):
        raise FleetError("A trace was to be written to a folder without a name; name one.")
    place = Path(folder)
    try:
        there = [name for name in (*FILES, TRUTH_FILE) if (place / name).exists()]
        if there:
            raise FleetError(f"{shown_path(folder)} holds {there[0]} already; name another folder, or remove it.")
        with _whole_or_nothing(place) as draft:
            truth = _write(draft, jobs, seed, hazards, count, tell)
    except OSError as error:
        raise FileWriteError(
            f"A trace cannot be written to {shown_path(folder)}: {error.strerror or error}."
        ) from error
    return truth


@contextmanager
def _whole_or_nothing(place: Path) -> Iterator[Path]:
    """Give a hidden folder to write in; what is in it moves to its place at the end, or nothing is left behind."""
    made = [folder for folder in (place, *place.parents) if not folder.exists()]
    place.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=place, prefix=".trace.", suffix=".partial"))
    try:
        yield draft
        with signals_deferred():
            for name in (*FILES, TRUTH_FILE):
                os.replace(draft / name, place / name)
            made = []
    finally:
        with signals_deferred():
            shutil.rmtree(draft, ignore_errors=True)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()


def _write(
    place: Path, jobs: int, seed: int, hazards: Hazards, users: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Write the tables piece by piece, then the truth; return that."""
    counted = {"jobs": 0, "tasks": 0, "instances": 0}
    statuses = dict.fromkeys(map(str, _STATUSES), 0)
    with ExitStack() as stack:
        files = [stack.enter_context((place / name).open("wb")) for name in FILES]
        for first, generator, who, tasks in _pieces(jobs, seed, hazards, users):
            frames = _frames(first, generator, who, tasks, hazards)
            for name, frame, file in zip(counted, frames, files, strict=True):
                frame.write_csv(file, include_header=False)
                counted[name] += frame.height
            for name, number in zip(_STATUSES, np.bincount(tasks.status, minlength=len(_STATUSES))):
                statuses[str(name)] += int(number)
            tell(f"{counted['jobs']:,} of {jobs:,} jobs")
    truth = {"format": "pai", "seed": seed, **counted, "users": users, "task_statuses": statuses, **hazards.truth()}
    (place / TRUTH_FILE).write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
    return truth


def generate_outcomes(
    jobs: int, seed: int = 0, hazards: Hazards | None = None, users: int | None = None
) -> OutcomeTable:
    """Return the tasks of the trace that :func:`generate_trace` writes, as reading it gives them."""
    hazards = hazards or Hazards()
    jobs, seed, count = _checked(jobs, seed, users)
    frames = []
    for first, generator, who, tasks in _pieces(jobs, seed, hazards, count):
        plans = _plans(generator, tasks, hazards)
        running = tasks.status == 2
        start, end = tasks.start.astype(float), (tasks.start + tasks.run).astype(float)
        to_status = np.array(["passed", "failed", "missing", "cancelled"])
        frames.append(
            pl.DataFrame(
                {
                    "key": _names("job-{:07d}", tasks.job + first) + _names("/task-{}", tasks.number),
                    "group": who.names[tasks.user],
                    "status": to_status[tasks.status],
                    "started": start,
                    "ended": pl.Series(end).set(pl.Series(running), None),
                    "gpu_type": np.array(list(TYPE_SHARES))[tasks.types],
                    "inst_num": tasks.size,
                    **plans,
                }
            ).with_columns(
                pl.when(pl.Series(running)).then(pl.lit("running")).alias("cause"),
                (pl.col("plan_gpu") / 100.0 * pl.col("inst_num")).alias("gpus"),
                pl.col("group").alias("user"),
            )
        )
    return OutcomeTable(pl.concat(frames))


def _checked(jobs: int, seed: int, users: int | None) -> tuple[int, int, int]:
    """Return the numbers of jobs, the seed and the number of users, where they are accepted."""
    check_count("seed", seed, least=0, error=FleetError)
    check_count("jobs", jobs, least=1, error=FleetError)
    if users is not None:
        check_count("users", users, least=1, error=FleetError)
    count = min(1242, max(5, jobs // 40)) if users is None else users
    for name, number, most in (("jobs", jobs, _MOST_JOBS), ("users", count, _MOST_USERS)):
        if number > most:
            raise FleetError(f"{name} was given as {number:,}; accepted are at most {most:,}.")
    return int(jobs), int(seed), int(count)


def _pieces(
    jobs: int, seed: int, hazards: Hazards, users: int
) -> Iterator[tuple[int, np.random.Generator, _Users, _Tasks]]:
    """Yield the number of each piece's first job, what is random in it, the users, and its tasks."""
    firsts = range(0, jobs, _PIECE)
    root, *streams = np.random.SeedSequence(seed).spawn(len(firsts) + 1)
    who = _make_users(np.random.default_rng(root), hazards, users)
    for first, stream in zip(firsts, streams, strict=True):
        generator = np.random.default_rng(stream)
        yield first, generator, who, _make_tasks(generator, min(_PIECE, jobs - first), who, hazards)


def _make_users(generator: np.random.Generator, hazards: Hazards, count: int) -> _Users:
    weights = generator.lognormal(0.0, 0.7, count)
    return _Users(
        names=np.array([f"user-{number:04d}" for number in range(count)]),
        shares=weights / weights.sum(),
        types=generator.choice(len(TYPE_SHARES), count, p=list(TYPE_SHARES.values())),
        cpu_shift=generator.integers(-1, 2, count).astype(float),
        failing=positive_stable(generator, hazards.failed.stability, count),
        passing=positive_stable(generator, hazards.passed.stability, count),
    )


def _make_tasks(generator: np.random.Generator, jobs: int, who: _Users, hazards: Hazards) -> _Tasks:
    instances = np.floor(generator.pareto(_TAIL, jobs)).clip(0, _MOST - _FEWEST).astype(np.int64) + _FEWEST
    tasks = np.minimum(generator.choice((1, 2, 3), jobs, p=_TASKS), instances)
    job = np.repeat(np.arange(jobs), tasks)
    number = np.arange(len(job)) - np.repeat(np.cumsum(tasks) - tasks, tasks)
    size = np.where(number == 0, (instances - tasks + 1)[job], 1)
    user = generator.choice(len(who.shares), jobs, p=who.shares)[job]
    own = generator.random(len(job)) < 0.5
    types = np.where(own, who.types[user], generator.choice(len(TYPE_SHARES), len(job), p=list(TYPE_SHARES.values())))
    cpu = 100.0 * np.round(2.0 ** (generator.uniform(0.6, 5.0, len(job)) + who.cpu_shift[user])).clip(1)
    plans = {
        "plan_gpu": generator.choice(np.array(_GPU_PERCENT, dtype=float), len(job), p=_GPU_SHARES),
        "plan_cpu": cpu,
        "plan_mem": np.round(2.0 ** generator.normal(4.8, 1.2, len(job))).clip(1, 512),
    }
    x = np.stack([np.log2((size if name == "size" else plans[name]) / REFERENCE[name]) for name in EFFECTS], axis=1)
    failing = hazards.failed.draw(generator, types, x, who.failing[user])
    passing = hazards.passed.draw(generator, types, x, who.passing[user])
    cancelling = generator.standard_exponential(len(job)) * 3600.0 / max(hazards.cancelled_per_h, 1e-12)
    span = round(hazards.days * 86400)
    start = np.minimum(generator.integers(0, span, jobs)[job] + generator.integers(0, 30, len(job)), span - 1)
    ends = np.stack([passing, failing, (span - start).astype(float), cancelling])
    status = ends.argmin(axis=0)
    run = np.where(status == 2, span - start, np.maximum(1, np.round(ends.min(axis=0))).astype(np.int64))
    status = np.where(start + run > span, 2, status)
    return _Tasks(job, number, user, types, size, plans, start, run, status)


def _plans(generator: np.random.Generator, tasks: _Tasks, hazards: Hazards) -> dict[str, pl.Series]:
    """Return the plans with some left out."""
    series = {}
    for name, values in tasks.plans.items():
        lost = generator.random(len(values)) < hazards.missing
        series[name] = pl.Series(values).set(pl.Series(lost), None)
    return series


def _names(form: str, numbers: Ints) -> pl.Series:
    """Return a name for each number; ``form`` holds one field such as ``{:07d}``."""
    before, _, rest = form.partition("{")
    width, _, after = rest.partition("}")
    digits = pl.Series(numbers).cast(pl.String)
    padded = digits.str.zfill(int(width[2:-1])) if width else digits
    return pl.Series([before]) + padded + pl.Series([after])


def _frames(
    first: int, generator: np.random.Generator, who: _Users, tasks: _Tasks, hazards: Hazards
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    plans = _plans(generator, tasks, hazards)
    status = pl.Series(_STATUSES)[tasks.status]
    running = pl.Series(tasks.status == 2)
    end = pl.Series(tasks.start + tasks.run).set(running, None)
    task = pl.DataFrame(
        {
            "job_name": _names("job-{:07d}", tasks.job + first),
            "task_name": _names("task-{}", tasks.number),
            "inst_num": tasks.size,
            "status": status,
            "start_time": tasks.start,
            "end_time": end,
            "plan_cpu": plans["plan_cpu"],
            "plan_mem": plans["plan_mem"],
            "plan_gpu": plans["plan_gpu"],
            "gpu_type": pl.Series(list(TYPE_SHARES))[tasks.types],
        }
    )
    return _job_frame(task, pl.Series(who.names[tasks.user])), task, _instance_frame(task, generator, tasks, first)


def _job_frame(task: pl.DataFrame, user: pl.Series) -> pl.DataFrame:
    """Return the jobs: one fails with any of its tasks, and runs as long as any does."""
    has = {name: (pl.col("status") == name).any() for name in (FAILED, RUNNING, CANCELLED)}
    status = pl.when(has[FAILED]).then(pl.lit(FAILED)).when(has[RUNNING]).then(pl.lit(RUNNING))
    return (
        task.with_columns(user.alias("user"))
        .group_by("job_name", maintain_order=True)
        .agg(
            pl.col("user").first(),
            status.when(has[CANCELLED]).then(pl.lit(CANCELLED)).otherwise(pl.lit(PASSED)).alias("status"),
            pl.col("start_time").min(),
            pl.when(pl.col("end_time").is_null().any()).then(None).otherwise(pl.col("end_time").max()).alias("end_time"),
        )
        .select(
            "job_name", pl.col("job_name").str.replace("job", "run").alias("inst_id"), "user", "status", "start_time",
            "end_time",
        )
    )  # fmt: skip


def _instance_frame(task: pl.DataFrame, generator: np.random.Generator, tasks: _Tasks, first: int) -> pl.DataFrame:
    """Return the instances: the first of a task begins and ends with it, the others within that time."""
    of = np.repeat(np.arange(len(tasks.size)), tasks.size)
    number = np.arange(len(of)) - np.repeat(np.cumsum(tasks.size) - tasks.size, tasks.size)
    later = np.minimum(generator.integers(0, 30, len(of)), tasks.run[of] // 2) * (number > 0)
    earlier = np.minimum(generator.integers(0, 30, len(of)), tasks.run[of] // 2) * (number > 0)
    running = pl.Series(tasks.status[of] == 2)
    job = task["job_name"].gather(of)
    run = job.str.replace("job", "run")
    return pl.DataFrame(
        {
            "job_name": job,
            "task_name": task["task_name"].gather(of),
            "inst_name": _names("instance-{}", number),
            "worker_name": run + _names("-t{}", tasks.number[of]) + _names("-{}", number),
            "inst_id": run,
            "status": task["status"].gather(of),
            "start_time": tasks.start[of] + later,
            "end_time": pl.Series((tasks.start + tasks.run)[of] - earlier).set(running, None),
            "machine": _names("machine-{:04d}", generator.integers(0, 1800, len(of))),
        }
    )
