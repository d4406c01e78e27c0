"""What has come back of a campaign, as a table of outcomes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.core.errors import FileWriteError
from deep500.core.texts import one_line
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.job_record import STAGES
from deep500.fleet.compat.joining import ReadRecord, read_record
from deep500.fleet.compat.running import outcomes_now
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.reading import read_outcomes

__all__ = ["OUTCOMES_FILE", "Collected", "collect_campaign"]

OUTCOMES_FILE = "outcomes.jsonl"


@dataclass(frozen=True)
class Collected:
    """What has come back.

    Attributes:
        campaign: Of which campaign.
        outcomes: One for each cell, in the campaign's order.
        stages: How each stage of each cell went: ``ok``, ``skipped``, ``failed``, ``running``, or empty.
        details: What each stage of each cell said.
        report: What was wrong with the records.
    """

    campaign: Campaign
    outcomes: tuple[Outcome, ...]
    stages: dict[str, dict[str, str]]
    details: dict[str, dict[str, str]]
    report: InputReport

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        cells = {cell.cell_id: cell.to_dict() for cell in self.campaign.cells}
        return {
            "campaign": self.campaign.name,
            "created": self.campaign.created,
            "matrix_hash": self.campaign.matrix_hash,
            "backend": self.campaign.backend,
            "options": dict(self.campaign.options),
            "outcomes": [
                {
                    "cell": cells[outcome.key],
                    "status": outcome.status,
                    "cause": outcome.cause,
                    "submitted": outcome.submitted,
                    "started": outcome.started,
                    "ended": outcome.ended,
                    "gpus": outcome.gpus,
                    "cost": outcome.cost,
                    "labels": dict(outcome.labels),
                    "stages": {
                        stage: {"went": went, "detail": self.details[outcome.key][stage]}
                        for stage, went in self.stages[outcome.key].items()
                    },
                }
                for outcome in self.outcomes
            ],
            "dropped": [dropped.to_dict() for dropped in self.campaign.dropped],
            "notes": list(self.campaign.notes),
            "input": self.report.to_dict(),
        }


def collect_campaign(campaign: Campaign) -> Collected:
    """Read all records of a campaign, write ``outcomes.jsonl``, and return what was found.

    Nothing has to have ended, and whatever submitted the jobs may be gone. A record that cannot be read loses its own
    cell only. Where the table cannot be written the report says so.

    Raises:
        FleetError: What the backend remembers cannot be read.
    """
    found, _ = outcomes_now(campaign)
    outcomes, report = _written(campaign.folder / OUTCOMES_FILE, tuple(found.values()))
    stages, details = {}, {}
    for cell in campaign.cells:
        folder = campaign.cell_folder(cell)
        record = read_record(folder, cell.cell_id)
        source = str(folder / "record.json")
        if record.fault is not None:
            report.add(ProblemKind.MALFORMED, source, examples=[record.fault], effect="its cell has no stages")
        if record.backwards:
            report.add(ProblemKind.CLOCK_SKEW, source, len(record.backwards), record.backwards, "kept as they are")
        stages[cell.cell_id] = {stage: _went(record, stage) for stage in STAGES}
        details[cell.cell_id] = {
            stage: one_line(str(record.stages.get(stage, {}).get("detail", ""))) for stage in STAGES
        }
    return Collected(campaign, outcomes, stages, details, report)


def _written(path: Path, outcomes: tuple[Outcome, ...]) -> tuple[tuple[Outcome, ...], InputReport]:
    """Write the table and return what the other verbs will read there, with what is wrong with it."""
    with tempfile.TemporaryDirectory() as scratch:
        place, fault = path, None
        try:
            OutcomeTable.from_outcomes(outcomes).write(place)
        except FileWriteError as error:  # someone else's campaign, or a full disk: it can be looked at all the same
            place, fault = Path(scratch) / path.name, error
            OutcomeTable.from_outcomes(outcomes).write(place)
        report = InputReport()
        if outcomes:
            table, report = read_outcomes([place], "outcomes")
            outcomes = tuple(table.outcomes())
    if fault is not None:
        report.add(ProblemKind.MALFORMED, str(path), examples=[str(fault)], effect="the table was not written")
    return outcomes, report


def _went(record: ReadRecord, stage: str) -> str:
    said = record.stages.get(stage)
    if said is None:
        return ""
    if said.get("ok") is None:
        return "running"
    if said["ok"] is True:
        return "skipped" if stage in record.skipped else "ok"
    return "failed"
