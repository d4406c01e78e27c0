"""Traces of SenseTime's Helios and of Shanghai AI Laboratory's Acme: what SLURM recorded of each job."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_of
from deep500.fleet.readers._delimited import Columns, column_names, read_table

__all__ = ["HeliosReader"]

_NEEDED = {"job_id", "user", "state", "start_time", "end_time"}

#: Status of each state; SLURM's own, of which the traces have the first five.
_STATUSES = {
    "COMPLETED": "passed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "NODE_FAIL": "unreachable",
    "OUT_OF_MEMORY": "failed",
    "DEADLINE": "timeout",
    "BOOT_FAIL": "unreachable",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "RUNNING": "missing",
    "COMPLETING": "missing",
    "PENDING": "missing",
    "SUSPENDED": "missing",
    "REQUEUED": "missing",
    "RESIZING": "missing",
}
_WITHOUT_CAUSE = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
_UNENDED = ("RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING")

_TEXTS = ("vc", "type", "jobname", "partition")
_NUMBERS = ("cpu_num", "node_num", "mem_per_pod_GB", "shared_mem_per_pod", "queue")
_TIMES = ("fail_time", "stop_time")


class HeliosReader(Reader):
    """``cluster_log.csv`` of Helios, ``trace_seren.csv`` and ``trace_kalos.csv`` of Acme.

    The key is the ``job_id``, the group the ``user``; GPUs are ``gpu_num``. A job that lost its machine
    (``NODE_FAIL``) is ``unreachable``, one that runs ``missing``. Times without a zone, as in Helios, are taken as UTC.

    Source: Hu et al., Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters,
    SC 2021 (S-Lab-System-Group/HeliosData); Hu et al., Characterization of Large Language Model Development in the
    Datacenter, NSDI 2024 (InternLM/AcmeTrace).
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether its first line names the columns."""
        return not path.is_dir() and set(column_names(head, ",")) >= _NEEDED

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the jobs."""
        names = column_names(head_of(path), ",")
        texts = [name for name in _TEXTS if name in names]
        numbers = [name for name in _NUMBERS if name in names]
        times = [name for name in _TIMES if name in names]
        columns = Columns(
            None,
            ("job_id", "user", "state", *texts),
            ("gpu_num", *numbers),
            ("submit_time", "start_time", "end_time", *times),
        )
        table = read_table(path, report, columns, lambda rows: rows)
        nameless = table.filter(pl.col("job_id").is_null() | pl.col("user").is_null())
        lines = [f"line {line} has no job_id or no user" for line in nameless["line"].head(3)]
        report.add(ProblemKind.INCOMPLETE, str(path), nameless.height, lines)
        table = table.filter(pl.col("job_id").is_not_null() & pl.col("user").is_not_null())
        state = pl.col("state").str.to_uppercase().str.extract(r"^(\w+)").alias("word")  # "CANCELLED by 1000"
        table = table.with_columns(state)
        unknown = table.filter(~pl.col("word").is_in(list(_STATUSES)).fill_null(False))
        words = [f"line {line}: {word}" for line, word in unknown.select("line", "state").head(3).rows()]
        report.add(ProblemKind.UNKNOWN_STATUS, str(path), unknown.height, words)
        word = pl.col("word")
        return table.select(
            pl.col("job_id").alias("key"),
            pl.col("user").alias("group"),
            word.replace_strict(_STATUSES, default="missing").alias("status"),
            pl.when(~word.is_in(_WITHOUT_CAUSE)).then(word.str.to_lowercase().str.replace_all("_", " ")).alias("cause"),
            pl.col("submit_time").alias("submitted"),
            pl.col("start_time").alias("started"),
            pl.when(~word.is_in(_UNENDED).fill_null(False)).then("end_time").alias("ended"),
            pl.col("gpu_num").alias("gpus"),
            "user",
            *texts,
            *numbers,
            *times,
        )
