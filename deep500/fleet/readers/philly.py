"""Microsoft's Philly traces: the log of jobs, with every attempt to run them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_text
from deep500.fleet.readers._json import document_of
from deep500.fleet.readers._rows import Rows
from deep500.fleet.readers._values import seconds_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PhillyReader"]

_STATUSES: dict[str, tuple[str, str | None]] = {
    "Pass": ("passed", None),
    "Failed": ("failed", None),
    "Killed": ("cancelled", "killed"),
    "Running": ("missing", "running"),
}


class PhillyReader(Reader):
    """The file ``cluster_job_log``: a JSON array of jobs with their attempts.

    An outcome is a job: its key is the ``jobid``, its group the ``user``. It started with its first attempt and ended
    with its last; where the log tells no end of that, it is unknown, and counted. The status is that of the job, for
    the log has none of an attempt; ``attempts`` counts them. GPUs are those of the last attempt, the cost is the sum
    over all attempts whose times are known. Times have no zone there and are taken as UTC.

    Source: Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, ATC 2019;
    msr-fiddle/philly-traces.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is a JSON array of objects with ``jobid`` and ``attempts``."""
        text = head_text(head).lstrip()
        return text.startswith("[") and '"jobid"' in text and '"attempts"' in text

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the jobs."""
        jobs = document_of(path, report)
        if not isinstance(jobs, list):
            raise FleetError("It holds no list of jobs.")
        rows = Rows(path, report, user=str, vc=str, attempts=float, machines=float, run_s=float)
        for number, job in enumerate(jobs, 1):
            attempts = job.get("attempts", []) if isinstance(job, dict) else None
            if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
                rows.fault(ProblemKind.MALFORMED, f"job {number} is no object with a list of attempts")
                continue
            _add(job, attempts, f"job {number}", rows)
        return rows.frame()


def _add(job: dict[str, Any], attempts: list[dict[str, Any]], where: str, rows: Rows) -> None:
    verdict = rows.status(job.get("status"), _STATUSES.get, where)
    runs = [(seconds_of(a.get("start_time")), seconds_of(a.get("end_time")), _machines(a)) for a in attempts]
    known = [(ended - started, gpus) for started, ended, (_, gpus) in runs if started is not None and ended is not None]
    has_no_end = bool(runs) and attempts[-1].get("end_time") in (None, "None", "")
    if has_no_end and verdict["cause"] != "running":  # a status is written when a job has ended, whenever that was
        rows.fault(ProblemKind.INCOMPLETE, f"{where} has ended, and its last attempt has no end", "its end is unknown")
    machines, gpus = runs[-1][2] if runs else (None, None)
    rows.add(
        job.get("jobid"),
        job.get("user"),
        where=where,
        **verdict,
        submitted=job.get("submitted_time"),
        started=attempts[0].get("start_time") if attempts else None,
        ended=None if has_no_end or not attempts else attempts[-1].get("end_time"),
        gpus=gpus,
        cost=sum(max(0.0, span) * (count or 1) for span, count in known) / 3600.0 if known else None,
        user=job.get("user"),
        vc=job.get("vc"),
        attempts=len(attempts),
        machines=machines,
        run_s=sum(max(0.0, span) for span, _ in known) if known else None,
    )


def _machines(attempt: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the number of machines and of GPUs of an attempt."""
    detail = attempt.get("detail")
    if not isinstance(detail, list):
        return None, None
    gpus = [machine.get("gpus") for machine in detail if isinstance(machine, dict)]
    return len(detail), sum(len(each) for each in gpus if isinstance(each, list))
