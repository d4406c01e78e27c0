"""GitHub Actions: the answer to "list jobs for a workflow run"."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_text
from deep500.fleet.readers._json import documents_of
from deep500.fleet.readers._rows import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["GithubJobsReader"]

#: Status and cause of each conclusion that GitHub documents for a check run.
_CONCLUSIONS: dict[str, tuple[str, str | None]] = {
    "success": ("passed", None),
    "failure": ("failed", None),
    "cancelled": ("cancelled", None),
    "skipped": ("missing", "skipped"),
    "timed_out": ("timeout", None),
    "startup_failure": ("environment", "startup failure"),
    "neutral": ("missing", "neutral"),
    "action_required": ("missing", "action required"),
    "stale": ("missing", "stale"),
}

#: Causes of jobs that are not at their end.
_STATES = {
    "queued": "queued",
    "in_progress": "running",
    "waiting": "waiting",
    "pending": "pending",
    "requested": "requested",
}


class GithubJobsReader(Reader):
    """GitHub Actions: the JSON of "list jobs for a workflow run", one page or several.

    The key is the job's name, the group its commit; attempts of one run are reruns. A job that is not at its end is
    ``missing``, with the cause ``running`` when it has begun.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is JSON with ``jobs`` and a ``total_count``, or jobs with a ``run_id`` and a ``conclusion``."""
        text = head_text(head).lstrip()
        page = '"jobs"' in text and '"total_count"' in text[:4096]
        return text[:1] in ("{", "[") and (
            page or all(f'"{name}"' in text for name in ("run_id", "conclusion", "name"))
        )

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the jobs."""
        rows = Rows(
            path, report, run_id=float, job_id=float, attempt=float, workflow=str, branch=str, runner=str,
            runner_labels=str,
        )  # fmt: skip
        for number, job in enumerate(_jobs(documents_of(path, report), rows), 1):
            if isinstance(job, dict):
                _add(job, f"job {number}", rows)
            else:
                rows.fault(ProblemKind.MALFORMED, f"job {number} is no object")
        return rows.frame()


def _jobs(documents: list[Any], rows: Rows) -> Iterator[Any]:
    pages = [page for document in documents for page in (document if isinstance(document, list) else [document])]
    for number, page in enumerate(pages, 1):
        if isinstance(page, dict) and isinstance(page.get("jobs"), list):
            yield from page["jobs"]
            continue
        if isinstance(page, dict) and "conclusion" in page:
            yield page
            continue
        if len(pages) == 1:
            raise FleetError(
                "It holds no list of jobs; the answer to GitHub's 'list jobs for a workflow run' is needed."
            )
        rows.fault(ProblemKind.MALFORMED, f"page {number} holds no list of jobs")


def _add(job: dict[str, Any], where: str, rows: Rows) -> None:
    state, conclusion = job.get("status"), job.get("conclusion")
    labels = job.get("labels")
    begun = state in ("completed", "in_progress")
    if conclusion is None and state in _STATES:
        verdict: dict[str, Any] = {"status": "missing", "cause": _STATES[state]}
    else:
        verdict = rows.status(conclusion, _CONCLUSIONS.get, where)
    skipped = conclusion == "skipped"
    rows.add(
        job.get("name"),
        job.get("head_sha") or job.get("run_id"),
        where=where,
        **verdict,
        submitted=job.get("created_at"),
        started=job.get("started_at") if begun and not skipped else None,
        ended=job.get("completed_at") if not skipped else None,
        run_id=job.get("run_id"),
        job_id=job.get("id"),
        attempt=job.get("run_attempt"),
        workflow=job.get("workflow_name"),
        branch=job.get("head_branch"),
        runner=job.get("runner_name") or None,
        runner_labels=", ".join(map(str, labels)) if isinstance(labels, list) and labels else None,
    )
