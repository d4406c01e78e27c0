"""Alibaba's trace of a cluster with GPUs: tables of jobs, tasks and instances without column names."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from deep500.core.errors import FleetError
from deep500.core.texts import shown_path
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_of
from deep500.fleet.readers._delimited import Columns, column_names, read_table

__all__ = ["PaiReader"]

#: The columns of each table, in order.
_TABLES = {
    "job": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    "task": (
        "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
        "gpu_type",
    ),
    "instance": (
        "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine",
    ),
}  # fmt: skip

_NAME = re.compile(r"pai_(job|task|instance)_table(?:\.csv)?(?:\.gz)?")
_STATUSES = {
    "Terminated": "passed",
    "Failed": "failed",
    "Running": "missing",
    "Waiting": "missing",
    "Interrupted": "cancelled",
}
#: What `deep500 fleet trace generate` writes beside the tables: the truth about them, and no table.
_TRUTH_FILE = "truth.json"

_CAUSES = {"Running": "running", "Waiting": "waiting"}


class PaiReader(Reader):
    """The folder with ``pai_job_table.csv``, ``pai_task_table.csv`` and ``pai_instance_table.csv`` (or ``.csv.gz``).

    An outcome is a task: its key is ``job/task``, its group the job's user. Terminated has passed, Interrupted (a
    status of instances) was ``cancelled``, a task that runs or waits is ``missing``. Started and ended are the task's
    own times, submitted is when its job began to be there. GPUs are ``plan_gpu`` (percent of one) times the number of
    instances that were planned. The labels ``instances``, ``instances_started``, ``instances_ended`` and ``machines``
    sum up its instances: their number, the earliest beginning, the latest end, and the number of different machines.
    Only the table of tasks has to be there. Column names are taken from a first line or a file ``.header`` that has
    them, else they are the published ones.

    Source: Weng et al., MLaaS in the Wild, NSDI 2022; the trace's description in alibaba/clusterdata,
    cluster-trace-gpu-v2020.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is a folder that holds a table of tasks, or that table itself."""
        if path.is_dir():
            return "task" in _tables(path)
        found = _NAME.fullmatch(path.name)
        return found is not None and found.group(1) == "task"

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the tasks; the tables beside that of the tasks are used where they are there."""
        tables = _tables(path if path.is_dir() else path.parent)
        if not path.is_dir():
            tables["task"] = path
        if "task" not in tables:
            raise FleetError(f"{shown_path(path)} holds no pai_task_table.csv, which is needed.")
        if path.is_dir():
            _count_others(path, report)
        tasks = _tasks(tables["task"], report)
        if "job" in tables:
            tasks = _with_jobs(tasks, tables["job"], report)
        else:
            report.add(ProblemKind.INCOMPLETE, str(path), 1, ["there is no pai_job_table.csv"], "users are unknown")
            tasks = tasks.with_columns(user=pl.lit(None, pl.String), submitted=pl.lit(None, pl.Float64))
        if "instance" in tables:
            tasks = _with_instances(tasks, tables["instance"], report)
        _count_statuses(tasks, tables["task"], report)
        return _outcomes(tasks)


def _tables(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        named = _NAME.fullmatch(file.name)
        if named is not None and file.is_file():
            found.setdefault(named.group(1), file)
    return found


def _count_others(folder: Path, report: InputReport) -> None:
    """Count files that do not belong to the trace."""
    known = ("pai_", ".")
    others = [f.name for f in sorted(folder.iterdir()) if not f.name.startswith(known) and f.name != _TRUTH_FILE]
    report.add(ProblemKind.UNRECOGNISED, str(folder), len(others), others)


def _columns(file: Path, kind: str, texts: tuple[str, ...], numbers: tuple[str, ...]) -> Columns:
    """Return what is wanted of a table, and the names that its columns have."""
    own = column_names(head_of(file), ",")
    if set(texts) <= set(own):
        return Columns(None, texts, numbers)
    names: tuple[str, ...] = _TABLES[kind]
    header = file.with_name(f"pai_{kind}_table.header")
    if header.is_file():
        given = tuple(column_names(head_of(header), ","))
        names = given if set(texts) <= set(given) else names
    return Columns(names, texts, numbers)


def _tasks(file: Path, report: InputReport) -> pl.DataFrame:
    columns = _columns(
        file,
        "task",
        ("job_name", "task_name", "status", "gpu_type"),
        ("inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"),
    )
    table = read_table(file, report, columns, lambda rows: rows)
    nameless = table.filter(pl.col("job_name").is_null() | pl.col("task_name").is_null())
    lines = [f"line {line} names no job or no task" for line in nameless["line"].head(3)]
    report.add(ProblemKind.INCOMPLETE, str(file), nameless.height, lines)
    if nameless.height:
        table = table.filter(pl.col("job_name").is_not_null() & pl.col("task_name").is_not_null())
    return table.drop("line")


def _with_jobs(tasks: pl.DataFrame, file: Path, report: InputReport) -> pl.DataFrame:
    columns = _columns(file, "job", ("job_name", "user"), ("start_time",))
    jobs = read_table(file, report, columns, lambda rows: rows)
    nameless = jobs.filter(pl.col("job_name").is_null() | pl.col("user").is_null())
    lines = [f"line {line} names no job or no user" for line in nameless["line"].head(3)]
    report.add(
        ProblemKind.INCOMPLETE, str(file), nameless.height, lines, "their users are unknown, or they were left out"
    )
    once = jobs.filter(pl.col("job_name").is_not_null()).unique("job_name", keep="first", maintain_order=True)
    twice = jobs.height - jobs["job_name"].null_count() - once.height
    report.add(ProblemKind.DUPLICATE, str(file), twice, effect="the first line of each job was taken")
    bare = once.join(tasks, on="job_name", how="anti")
    report.add(
        ProblemKind.INCOMPLETE, str(file), bare.height, bare["job_name"].head(3), "jobs without a task were left out"
    )
    once = once.select("job_name", "user", submitted="start_time")
    return tasks.join(once, on="job_name", how="left", maintain_order="left")


def _with_instances(tasks: pl.DataFrame, file: Path, report: InputReport) -> pl.DataFrame:
    columns = _columns(file, "instance", ("job_name", "task_name", "machine"), ("start_time", "end_time"))
    task = ["job_name", "task_name"]

    def summed_up(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return a row for each task, over one for each task and machine."""
        on_machine = rows.group_by(*task, "machine").agg(
            pl.len().alias("instances"), pl.col("start_time").min(), pl.col("end_time").max()
        )
        return on_machine.group_by(*task).agg(
            pl.col("instances").sum(),
            pl.col("start_time").min().alias("instances_started"),
            pl.col("end_time").max().alias("instances_ended"),
            pl.col("machine").count().alias("machines"),
        )

    instances = read_table(file, report, columns, summed_up)
    strays = instances.join(tasks, on=task, how="anti")
    count = int(strays["instances"].sum())
    names = [f"{job}/{name}" for job, name in strays.select(*task).head(3).rows()]
    report.add(ProblemKind.INCOMPLETE, str(file), count, names, "instances of no task were left out")
    return tasks.join(instances, on=task, how="left", maintain_order="left")


def _count_statuses(tasks: pl.DataFrame, file: Path, report: InputReport) -> None:
    unknown = tasks.filter(~pl.col("status").is_in(list(_STATUSES)).fill_null(False))
    words = [
        f"{job}/{task}: {status}"
        for job, task, status in unknown.select("job_name", "task_name", "status").head(3).rows()
    ]
    report.add(ProblemKind.UNKNOWN_STATUS, str(file), unknown.height, words)


def _outcomes(tasks: pl.DataFrame) -> pl.DataFrame:
    status = pl.col("status")
    running = status == "Running"
    counted = [
        pl.col(name).cast(pl.Float64) for name in ("instances", "instances_started", "instances_ended", "machines")
        if name in tasks.columns
    ]  # fmt: skip
    return tasks.select(
        pl.concat_str("job_name", "task_name", separator="/").alias("key"),
        pl.col("user").fill_null("unknown").alias("group"),
        status.replace_strict(_STATUSES, default="missing").alias("status"),
        pl.when(status.is_in(list(_STATUSES)))
        .then(status.replace_strict(_CAUSES, default=None, return_dtype=pl.String))
        .otherwise(pl.format("unknown status: {}", status.fill_null("none")))
        .alias("cause"),
        "submitted",
        pl.col("start_time").alias("started"),
        pl.when(running.not_() | status.is_null()).then("end_time").alias("ended"),
        (pl.col("plan_gpu") / 100.0 * pl.col("inst_num")).alias("gpus"),
        pl.col("job_name").alias("job"),
        pl.col("task_name").alias("task"),
        "user",
        "gpu_type",
        "inst_num",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        *counted,
    )
