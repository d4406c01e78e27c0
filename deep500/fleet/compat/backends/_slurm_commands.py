"""SLURM's commands, and what they print."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deep500.core.errors import FleetError
from deep500.core.texts import one_line
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.backends._commands import run_command

__all__ = ["Element", "RefusedError", "accounted", "queued", "submit_script"]


#: Fields of ``squeue --Format`` with their widths: what is longer is cut, so names come last.
_FIELDS = (
    ("ArrayJobID", 20),
    ("ArrayTaskID", 20),
    ("State", 24),
    ("Reason", 64),
    ("exit_code", 12),
    ("SubmitTime", 20),
    ("StartTime", 20),
    ("EndTime", 20),
    ("Name", 128),
)

#: What ``sacct`` is asked for.
_ACCOUNTED = ("JobID", "State", "ExitCode", "Submit", "Start", "End", "JobName")

_TIMES = ("Submit", "Start", "End")

_STATES = {
    "pending": "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    "running": "RUNNING COMPLETING STAGE_OUT SUSPENDED STOPPED SIGNALING RESIZING",
    "completed": "COMPLETED",
    "failed": "FAILED LAUNCH_FAILED RECONFIG_FAIL",
    "timeout": "TIMEOUT",
    "out_of_memory": "OUT_OF_MEMORY",
    "node_lost": "NODE_FAIL BOOT_FAIL PREEMPTED",
    "cancelled": "CANCELLED REVOKED",
    "expired": "DEADLINE",
}
_STATE_OF = {word: state for state, words in _STATES.items() for word in words.split()}

#: What SLURM says, among other words, of a request that its machines do not meet. Everything else (a controller that is
#: not there, an account that does not exist) says nothing of the machines.
_NO_SUCH_MACHINE = (
    "Requested node configuration is not available",
    "Requested partition configuration not available",
    "Invalid feature specification",
    "Invalid generic resource (gres) specification",
    "Requested GRES option unsupported",
    "Memory specification can not be satisfied",
    "Memory required by task is not available",
    "CPU count per node can not be satisfied",
    "More processors requested than permitted",
    "Node count specification invalid",
    "Requested time limit is invalid",
    "Job violates accounting/QOS policy",
    "Requested nodes are busy",
)


class RefusedError(Exception):
    """No machine meets the request; the message is SLURM's."""


@dataclass(frozen=True)
class Element:
    """One element of an array as a command of SLURM tells of it.

    Attributes:
        name: The array's name.
        job_id: Its number.
        index: That of the element; ``None`` for a job that is no array.
        state: What is known.
    """

    name: str
    job_id: int
    index: int | None
    state: SchedulerState


def submit_script(folder: Path, script: str, lock: int, dependency: str | None = None) -> int:
    """Submit a script of a folder and return the number of the job.

    ``sbatch`` inherits the lock: it stays taken until the submission has ended, also when this process is killed
    meanwhile, so that whoever takes it next can see the job.

    Args:
        folder: Where the script lies, from where it is submitted.
        script: Its name.
        lock: The handle of the lock.
        dependency: What ``--dependency`` says.

    Raises:
        RefusedError: No machine meets the request.
        FleetError: It could not be submitted for another reason.
    """
    command = ["sbatch", "--parsable", *([f"--dependency={dependency}"] if dependency else []), script]
    done = _run(command, folder, (lock,))
    if done.returncode == 0:
        number = done.stdout.strip().split(";")[0]
        if number.isdecimal():
            return int(number)
        raise FleetError(f"sbatch said {one_line(done.stdout)!r} instead of the number of a job.")
    said = _errors(done.stderr)
    if any(words in said for words in _NO_SUCH_MACHINE):
        raise RefusedError(said)
    raise FleetError(f"sbatch {script} failed: {said}. Nothing of it was submitted; run the campaign again.")


def queued() -> list[Element]:
    """Return this user's jobs that SLURM's controller still knows: it forgets ended ones after minutes.

    Raises:
        FleetError: The controller cannot be asked.
    """
    form = ",".join(f"{field}:{width}" for field, width in _FIELDS)
    command = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.geteuid()}", f"--Format={form}"]
    done = _run(command)
    if done.returncode != 0:
        raise FleetError(f"squeue failed: {_errors(done.stderr)}")
    return [element for line in done.stdout.splitlines() if (element := _queued(line)) is not None]


def accounted(names: Sequence[str], since: float) -> list[Element]:
    """Return the elements of arrays that accounting knows; none where there is no accounting.

    Args:
        names: The arrays' names.
        since: When the first was submitted.
    """
    if not names:
        return []
    command = ["sacct", "--parsable2", "--noheader", "--allocations", f"--format={','.join(_ACCOUNTED)}"]
    try:
        done = _run([*command, f"--name={','.join(names)}", f"--starttime={_local(since - 60)}"])
    except FleetError:
        return []
    if done.returncode != 0:
        return []
    return [element for line in done.stdout.splitlines() if (element := _accounted(line)) is not None]


def _queued(line: str) -> Element | None:
    """Return the element of a line of ``squeue``; ``None`` where it is not one of ours."""
    values, begin = {}, 0
    for field, width in _FIELDS:
        values[field] = line[begin : begin + width].strip()
        begin += width
    if not values["ArrayJobID"].isdecimal():
        return None
    index = values["ArrayTaskID"]
    raw = int(values["exit_code"]) if values["exit_code"].isdecimal() else 0
    code = -(raw & 0x7F) if raw & 0x7F else raw >> 8
    state = _state(values["State"], code, values["Reason"], *(_time(values[f"{w}Time"]) for w in _TIMES))
    return Element(
        values["Name"], int(values["ArrayJobID"]), int(index) if index.isdecimal() else None, _labelled(state, values)
    )


def _accounted(line: str) -> Element | None:
    parts = line.split("|", len(_ACCOUNTED) - 1)
    if len(parts) < len(_ACCOUNTED):
        return None
    values = dict(zip(_ACCOUNTED, parts))
    found = re.fullmatch(r"(\d+)(?:_(\d+))?", values["JobID"])
    if found is None:  # elements that still wait are written together
        return None
    exited, _, signal = values["ExitCode"].partition(":")
    code = -int(signal) if signal.isdecimal() and int(signal) else int(exited) if exited.isdecimal() else 0
    word, _, by = values["State"].partition(" ")  # "CANCELLED by 1000"
    state = _state(word, code, by, *(_time(values[time]) for time in _TIMES))
    index = found[2]
    label = {"ArrayJobID": found[1], "ArrayTaskID": index or ""}
    return Element(values["JobName"], int(found[1]), int(index) if index else None, _labelled(state, label))


def _state(
    word: str, code: int, reason: str, submitted: float | None, started: float | None, ended: float | None
) -> SchedulerState:
    state = _STATE_OF.get(word.rstrip("+"), "unknown")
    said = "" if reason in ("None", "(null)", "") else reason
    if state == "unknown":
        said = f"SLURM says {word}{' ' + said if said else ''}"
    if state == "failed" and reason == "BadConstraints":  # a submission that was refused leaves such a job behind
        state = "refused"
    if state == "cancelled" and said and not said.startswith("by "):  # squeue keeps what it waited for before
        said = f"it waited for {said}"
    over = state not in ("pending", "running", "unknown")
    # A waiting job has the time at which it may start; one that was taken back while it waited, that of its end.
    began = started if state not in ("pending", "expired", "refused") else None
    if state == "cancelled" and began is not None and began == ended and code == 0:
        began = None
    return SchedulerState(state, code if over else None, said, submitted, began, ended if over else None)


def _labelled(state: SchedulerState, values: dict[str, str]) -> SchedulerState:
    index = values["ArrayTaskID"]
    label = f"{values['ArrayJobID']}_{index}" if index.isdecimal() else values["ArrayJobID"]
    return SchedulerState(
        state.state, state.exit_code, state.reason, state.submitted, state.started, state.ended, label
    )


def _local(time: float) -> str:
    return datetime.datetime.fromtimestamp(time).isoformat(timespec="seconds")


def _time(text: str) -> float | None:
    """Return a time in seconds; 0 is none, and so is a word."""
    return float(text) if text.isdecimal() and int(text) else None


def _errors(text: str) -> str:
    """Return what a command complained of, without its own name."""
    lines = [re.sub(r"^(sbatch|squeue|sacct): (error: |fatal: )?", "", line) for line in text.splitlines()]
    return one_line("; ".join(line.removeprefix("Batch job submission failed: ") for line in lines if line.strip()))


def _run(
    command: list[str], folder: Path | None = None, kept: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a command of SLURM: times as seconds, messages in English, without formats that the user set."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SACCT_"))}
    absent = (
        "SLURM's commands are needed where a campaign is submitted. The files are written; submit them where there is "
        "SLURM, or run on another backend (--on local)."
    )
    return run_command(command, absent, folder, {**variables, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}, kept)
