"""What came of a cell, from its record and from what the scheduler says of its job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.core.files import read_regular
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, one_line, shown
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.job_record import RECORD_FILE, STAGES
from deep500.fleet.outcome import Outcome

__all__ = ["ReadRecord", "join", "read_record"]


@dataclass(frozen=True)
class ReadRecord:
    """The record of a job, as far as it can be read.

    Attributes:
        content: What it holds; ``None`` where there is none, or none that can be read.
        fault: Why it cannot be read; ``None`` where it can, or there is none.
    """

    content: dict[str, Any] | None = None
    fault: str | None = None

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """The stages that were begun, in their order."""
        said = {} if self.content is None else self.content["stages"]
        return {stage: said[stage] for stage in STAGES if stage in said}

    @property
    def stage(self) -> str | None:
        """The stage that was begun last."""
        return next(reversed(self.stages), None)

    @property
    def skipped(self) -> list[str]:
        """The stages that there was nothing to do for."""
        return [stage for stage, said in self.stages.items() if str(said.get("detail", "")).startswith("skipped")]

    @property
    def finished(self) -> bool:
        """Whether the job has written all that it would."""
        return self.content is not None and self.content["finished"] is True

    @property
    def backwards(self) -> list[str]:
        """The stages that ended before they began, or began before the last one had."""
        found, last = [], float("-inf")
        for stage, said in self.stages.items():
            ended = said.get("ended")
            if said["started"] < last or (ended is not None and ended < said["started"]):
                found.append(stage)
            last = max(last, said["started"])
        return found


def read_record(folder: Path, cell_id: str | None = None) -> ReadRecord:
    """Return the record of a folder, of this cell; what is wrong with it is its fault, and no other cell's."""
    try:
        content = parse_json(read_regular(folder / RECORD_FILE).decode("utf-8"))
    except FileNotFoundError:
        return ReadRecord()
    except (OSError, ValueError) as error:
        return ReadRecord(fault=f"{RECORD_FILE} cannot be read: {message_of(error)}")
    fault = _fault(content, cell_id)
    return ReadRecord(content) if fault is None else ReadRecord(fault=f"{RECORD_FILE} cannot be used: {fault}")


def _fault(content: Any, cell_id: str | None) -> str | None:
    """Return what a record lacks."""
    if not isinstance(content, dict):
        return "it is no JSON object"
    if cell_id is not None and content.get("cell", cell_id) != cell_id:
        return f"it is that of another cell, {shown(content['cell'])}"
    stages, error = content.get("stages"), content.get("error")
    if not isinstance(stages, dict) or not isinstance(content.get("finished"), bool):
        return "it has no stages, or does not say whether it is finished"
    for stage, said in stages.items():
        if stage not in STAGES or not isinstance(said, dict):
            return f"there is no stage {json.dumps(stage)}"
        if not _is_time(said.get("started")) or not (said.get("ended") is None or _is_time(said["ended"])):
            return f"the times of {stage!r} are no numbers"
    if error is not None and not (
        isinstance(error, dict) and error.get("stage") in STAGES and isinstance(error.get("message"), str)
    ):
        return "its error names no stage or has no message"
    return None


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def join(cell: Cell, campaign: str, record: ReadRecord, state: SchedulerState | None) -> Outcome:
    """Return what came of a cell.

    A record that is finished decides; otherwise the scheduler does, and the record tells how far it came:

    ============================================  ===========
    what is known                                 status
    ============================================  ===========
    all stages went well                          passed
    refused, or pending until the deadline        no_match
    the environment failed                        environment
    a later stage failed, or the job died in one  failed
    ended at a time limit                         timeout
    the node was lost, or nothing ever ran there  unreachable
    ended by someone                              cancelled
    waits, runs, or left no word                  missing
    ============================================  ===========

    Args:
        cell: The cell.
        campaign: The campaign's name.
        record: Its record.
        state: What the scheduler knows of its job; ``None`` when it was not submitted.
    """
    status, cause = _of_record(record, state) if record.finished else _of_state(record, state)
    if record.fault is not None:
        cause = record.fault if cause is None else f"{cause}; {record.fault}"
    started, ended = _times(record, state)
    facts = {} if record.content is None else record.content.get("facts", {})
    labels: dict[str, str | float | bool] = {
        "framework": cell.framework,
        "version": cell.version,
        "python": cell.python,
        "ranks": cell.ranks,
    }
    host = None if record.content is None else record.content.get("host")
    told = {
        "cuda": cell.cuda,
        "compute_capability": cell.compute_capability,
        "recipe": cell.recipe,
        "stage": record.stage,
        "host": host if isinstance(host, str) else None,
        "lock_hash": facts.get("lock_hash") if isinstance(facts, dict) else None,
        "skipped": ", ".join(record.skipped) or None,
        "job": None if state is None else state.label,
    }
    labels.update({name: one_line(str(value)) for name, value in told.items() if value is not None})
    return Outcome(
        key=cell.cell_id,
        group=campaign,
        status=status,
        cause=None if cause is None else one_line(cause),
        submitted=None if state is None else state.submitted,
        started=started,
        ended=ended,
        gpus=float(cell.gpus),
        labels=labels,
    )


def _of_record(record: ReadRecord, state: SchedulerState | None) -> tuple[str, str | None]:
    """Return status and cause of a record that is finished."""
    assert record.content is not None
    error = record.content.get("error")
    if error is None:
        wrong = [stage for stage in STAGES if record.stages.get(stage, {}).get("ok") is not True]
        return ("missing", f"the record ends without a word on {wrong[0]}") if wrong else ("passed", None)
    stage, kind, message = error["stage"], error.get("type"), error["message"]
    if kind == "Timeout":
        return "timeout", f"in {stage}: {message}"
    if kind in ("Terminated", "Died"):  # a signal ended the job or its probe: whose it was only the scheduler knows
        by_itself = ("cancelled", f"in {stage}: {message}"), ("failed", f"died in {stage} ({message})")
        return _ends(record).get("" if state is None else state.state, by_itself[kind == "Died"])
    return ("environment", message) if stage == "environment" else ("failed", f"{stage}: {message}")


def _ends(record: ReadRecord) -> dict[str, tuple[str, str | None]]:
    """Return what came of a job that the scheduler or the machine ended, by the scheduler's state."""
    stage = record.stage
    return {
        "timeout": ("timeout", f"ended by the scheduler{_within(stage)}"),
        "node_lost": ("unreachable", f"the machine was lost{_within(stage)}"),
        "cancelled": ("cancelled", f"cancelled{_within(stage)}"),
        "out_of_memory": ("failed", f"died{_within(stage)} (out of memory)"),
    }


def _within(stage: str | None) -> str:
    return " before the first stage" if stage is None else f" in {stage}"


def _of_state(record: ReadRecord, state: SchedulerState | None) -> tuple[str, str | None]:
    """Return status and cause where there is no record, or none that is finished."""
    stage = record.stage
    if state is None:
        return "missing", "not started" if stage is None else f"nothing is known of the job; it was last in {stage}"
    reason = f": {state.reason}" if state.reason else ""
    if state.state == "failed":
        return _died(stage, state, reason)
    told: dict[str, tuple[str, str | None]] = {
        **_ends(record),
        "refused": ("no_match", f"refused{reason}"),
        "expired": ("no_match", f"pending until the deadline{reason}"),
        "pending": ("missing", f"pending{reason}"),
        "running": ("missing", f"running{_within(stage) if stage is not None else ''}"),
        "cancelled": ("cancelled", f"cancelled{_within(stage)}{reason}"),
        "completed": ("missing", f"the job ended without finishing its record{_within(stage)}"),
        "unknown": ("missing", f"the scheduler knows nothing of the job{reason}"),
    }
    return told[state.state]


def _died(stage: str | None, state: SchedulerState, reason: str) -> tuple[str, str]:
    """Return what came of a job that ended by itself, without a record that is finished."""
    code = state.exit_code
    how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
    if stage is None:  # not even the first line was written: this says nothing about the framework
        return "unreachable", f"the job ended before its first stage{how}{reason}"
    return "failed", f"died in {stage}{how}"


def _times(record: ReadRecord, state: SchedulerState | None) -> tuple[float | None, float | None]:
    """Return when the job began and ended: as the record says, as the scheduler does where it does not."""
    stages = list(record.stages.values())
    started = float(stages[0]["started"]) if stages else None if state is None else state.started
    if not record.finished:
        active = state is not None and state.active
        return started, None if active or state is None else state.ended
    last = stages[-1].get("ended") if stages else None
    return started, float(last) if last is not None else None if state is None else state.ended
