"""From what DAGMan and the jobs of a DAG wrote to the states of cells."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deep500.core.files import read_regular
from deep500.core.strict_json import parse_json
from deep500.core.texts import one_line
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.backends._htcondor_files import DAG_FILE, STATUS_FILE

__all__ = ["states_of"]

#: The code of a job that was held because it took more memory than it had asked for, and because someone asked.
_HELD_FOR_MEMORY, _HELD_BY_USER = 34, 1

#: What DAGMan gives as the code of a node without one of its own.
_NOT_SUBMITTED, _REMOVED = -1001, -1002

#: States of a DAG, or of a node, in the status file: it ended well, it ended otherwise.
_DONE, _ERROR = 5, 6


def states_of(folder: Path, nodes: Mapping[str, str], submitted: float) -> dict[str, SchedulerState]:
    """Return the states of the cells of a DAG that was submitted.

    The log of the nodes decides; what it does not tell (its end may be missing) is taken from what the POST scripts
    noted, and then from DAGMan's file of states.

    Args:
        folder: The folder of the DAG.
        nodes: The cell of each node.
        submitted: When the DAG was submitted, in seconds since 1970 (UTC).
    """
    found = {cell: SchedulerState("pending", submitted=submitted) for cell in nodes.values()}
    names: dict[tuple[int, int], str] = {}
    for event in _events(folder / f"{DAG_FILE}.nodes.log"):
        job = (int(event.cluster), int(event.proc))
        node = str(event.get("LogNotes", "")).removeprefix("DAG Node: ").strip()
        if node in nodes and event.type.name == "SUBMIT":
            names[job] = nodes[node]
        if job in names:
            found[names[job]] = _after(found[names[job]], event, f"{job[0]}.{job[1]}")
    statuses, over = _statuses(folder / STATUS_FILE)
    for node, cell in nodes.items():
        if found[cell].active:
            noted = _noted(folder / "ends" / f"{cell}.json", found[cell])
            found[cell] = noted or _by_status(found[cell], statuses.get(node), over)
    return found


def _events(path: Path) -> Iterator[Any]:
    """Yield the events of a log, up to its end or to what cannot be read."""
    if not path.is_file():
        return
    import htcondor2

    events = htcondor2.JobEventLog(str(path)).events(stop_after=0)
    while True:
        try:
            yield next(events)
        except (StopIteration, htcondor2.HTCondorException, ValueError):
            return


def _after(state: SchedulerState, event: Any, label: str) -> SchedulerState:
    """Return the state of a job after an event."""
    kind, when = event.type.name, _time(str(event.get("EventTime", "")))
    if kind == "SUBMIT":  # also of another attempt of the node
        return SchedulerState("pending", submitted=when, label=label)
    if kind == "EXECUTE":
        return dataclasses.replace(state, state="running", started=when, reason="")
    if kind in ("JOB_EVICTED", "JOB_RECONNECT_FAILED", "SHADOW_EXCEPTION"):  # HTCondor starts it again, elsewhere
        reason = one_line(str(event.get("Reason", event.get("Message", "evicted")))) or "evicted"
        return dataclasses.replace(state, state="pending", started=None, reason=reason)
    if kind == "JOB_HELD":
        reason = f"held: {one_line(str(event.get('HoldReason', '')))} (code {event.get('HoldReasonCode', 0)})"
        return dataclasses.replace(state, state="pending", reason=reason)
    if kind == "JOB_RELEASED":
        return dataclasses.replace(state, state="pending", reason="")
    if kind == "JOB_TERMINATED":
        code = event.get("ReturnValue") if event.get("TerminatedNormally") else -int(event.get("TerminatedBySignal", 0))
        ended = "completed" if code == 0 else "failed"
        return dataclasses.replace(state, state=ended, exit_code=code, ended=when, reason="")
    if kind == "JOB_ABORTED":
        return dataclasses.replace(_removed(state, one_line(str(event.get("Reason", "")))), ended=when)
    if kind == "EXECUTABLE_ERROR":
        return dataclasses.replace(state, state="failed", ended=when, reason="the job's script could not be started")
    return state


def _removed(state: SchedulerState, reason: str) -> SchedulerState:
    """Return the state of a job that was removed: by whom is in the reason, and before it what it was held for."""
    if "PeriodicRemove" in reason:
        return dataclasses.replace(state, state="expired", reason=state.reason and f"it last was {state.reason}")
    if state.reason.startswith("held: "):
        code = state.reason.rpartition("(code ")[2].rstrip(")")
        states = {str(_HELD_FOR_MEMORY): "out_of_memory", str(_HELD_BY_USER): "cancelled"}
        return dataclasses.replace(state, state=states.get(code, "failed"))
    return dataclasses.replace(state, state="cancelled", reason=reason)


def _noted(path: Path, state: SchedulerState) -> SchedulerState | None:
    """Return what the POST script noted; ``None`` where it noted nothing that can be read."""
    try:
        said = parse_json(read_regular(path).decode("utf-8"))
        code, when = int(said["return"]), path.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if code == _NOT_SUBMITTED:
        return dataclasses.replace(
            state, state="refused", reason="condor_submit failed; campaign.dag.dagman.out says why"
        )
    if code == _REMOVED:
        return dataclasses.replace(_removed(state, "removed"), ended=when)
    ended = "completed" if code == 0 else "failed"
    return dataclasses.replace(state, state=ended, exit_code=code if code > -1000 else None, ended=when)


def _statuses(path: Path) -> tuple[dict[str, tuple[int, str]], bool]:
    """Return the state of each node with its details from DAGMan's file, and whether the DAG has ended."""
    try:
        text = read_regular(path).decode("utf-8", "replace")
    except OSError:
        return {}, False
    import classad2

    found, over = {}, False
    try:
        for said in classad2.parseAds(text):
            kind = said.get("Type", said.get("MyType"))
            if kind == "NodeStatus":
                found[str(said["Node"])] = (int(said["NodeStatus"]), str(said.get("StatusDetails", "")))
            elif kind == "DagStatus":
                over = said["DagStatus"] in (_DONE, _ERROR)
    except (ValueError, KeyError, TypeError, classad2.ClassAdException):
        return found, over  # the file is written anew by a process that may have ended meanwhile
    return found, over


def _by_status(state: SchedulerState, status: tuple[int, str] | None, over: bool) -> SchedulerState:
    number, details = status or (0, "")
    if number == _ERROR and state.label is None:
        return dataclasses.replace(state, state="refused", reason=one_line(details))
    if number == _DONE and state.label is None:  # the PRE script found a record that is finished
        return dataclasses.replace(state, state="completed")
    if over:
        return dataclasses.replace(state, state="cancelled", reason="the DAG ended before it")
    return state


def _time(text: str) -> float | None:
    """Return a time of the log: in the local zone, unless it ends with Z."""
    try:
        time = datetime.datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return None
    return (time.replace(tzinfo=datetime.timezone.utc) if text.endswith("Z") else time).timestamp()
