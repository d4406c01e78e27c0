"""This machine: a bounded pool of processes."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from deep500.core.errors import FileWriteError, FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.signals import signals_deferred
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown
from deep500.fleet.compat.backend import Backend, SchedulerState, Tell
from deep500.fleet.compat.campaign import Campaign, make_folder
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.cell_job import LOCK_FILE
from deep500.fleet.compat.environments import CACHE_VARIABLE
from deep500.fleet.compat.job_record import utc_s
from deep500.fleet.compat.processes import now_s

__all__ = ["LocalBackend"]

#: How often the pool looks.
_POLL_S = 0.1

#: So long a job has to end its children and write its record.
_GRACE_S = 10.0

#: Two readings of when a process was made may differ by so much.
_SAME_S = 1.0


@dataclass
class _Running:
    """A job of this process."""

    cell: Cell
    process: subprocess.Popen[bytes]
    since: float


class LocalBackend(Backend):
    """Runs cells on this machine, several at a time; those with GPUs one after the other.

    A job has a session of its own: it goes on when this process is killed, and ends at its own deadline.
    """

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return the options."""
        return {
            "jobs": "how many cells run at a time; by default half as many as there are cores",
            "cache": "the folder that keeps environments; by default one of the user's cache",
            "python": "the Python that runs the jobs; by default this one",
        }

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options.

        Raises:
            FleetError: One is not accepted.
        """
        super().__init__(options)
        jobs = self.options.get("jobs", str(max(1, (os.cpu_count() or 1) // 2)))
        if not jobs.isdecimal() or int(jobs) < 1:
            raise FleetError(f"The option 'jobs' is {shown(jobs)}; a whole number of at least 1 is needed.")
        self._jobs = int(jobs)
        named = self.options.get("cache") or os.environ.get(CACHE_VARIABLE)
        self._cache = Path(named).absolute() if named else platformdirs.user_cache_path("deep500", False) / "fleet"
        self._python = self.options.get("python", sys.executable)

    def generate(self, campaign: Campaign, cells: Sequence[Cell]) -> list[Path]:
        """Write a script that runs the cells one after the other."""
        lines = ["#!/bin/sh", f"export {CACHE_VARIABLE}={shlex.quote(str(self._cache))}"]
        lines += [shlex.join(campaign.job_command(cell, self._python)) for cell in cells]
        path = campaign.scheduler_folder / "run.sh"
        write_atomically(path, "\n".join(lines) + "\n", "script")
        return [path]

    def submit(self, campaign: Campaign, cells: Sequence[Cell], tell: Tell) -> None:
        """Run the cells and wait for them, and for those that an older process left running.

        Raises:
            FleetError: The Python that runs the jobs cannot be started.
            KeyboardInterrupt: What runs was ended; cells that had ended keep their outcomes.
        """
        make_folder(self._memory(campaign))
        states = self.states(campaign)
        others = [cell for cell in campaign.cells if cell not in cells and _is_active(states, cell)]
        for cell in cells:
            (self._memory(campaign) / f"{cell.cell_id}.json").unlink(missing_ok=True)
        waiting, running, total, submitted = list(cells), list[_Running](), len(cells) + len(others), utc_s()
        try:
            while waiting or running or others:
                running = [each for each in running if not self._has_ended(campaign, each)]
                others = [cell for cell in others if self._lives(campaign, cell.cell_id)]
                while (place := self._next(waiting, running)) is not None and len(running) + len(others) < self._jobs:
                    running.append(self._start(campaign, waiting.pop(place), submitted))
                done = total - len(waiting) - len(running) - len(others)
                names = ", ".join(each.cell.cell_id for each in running)
                tell(f"{done} of {total} cells done, {len(running) + len(others)} running: {names}")
                time.sleep(_POLL_S)
        except BaseException:
            self._end_all(campaign, running)
            raise

    def states(self, campaign: Campaign) -> dict[str, SchedulerState]:
        """Return what is known of the jobs; those that run are asked for."""
        found = {}
        for path in sorted(self._memory(campaign).glob("*.json")):
            try:
                said = parse_json(read_regular(path).decode("utf-8"))
                found[path.stem] = self._state(campaign, path.stem, said)
            except (OSError, ValueError, KeyError, TypeError) as error:  # a FleetError is a ValueError
                known = "running" if _is_locked(campaign.cell_folder(path.stem) / LOCK_FILE) else "unknown"
                found[path.stem] = SchedulerState(known, reason=f"{path.name} cannot be read: {message_of(error)}")
        return found

    def _state(self, campaign: Campaign, cell_id: str, said: dict[str, Any]) -> SchedulerState:
        times = {"submitted": said["submitted"], "started": said["started"], "ended": said["ended"]}
        label = str(said["pid"])
        if said["state"] != "running":
            return SchedulerState(said["state"], said["exit_code"], said["reason"], label=label, **times)
        if self._lives(campaign, cell_id):
            return SchedulerState("running", label=label, **times)
        if psutil.boot_time() > said["started"] + _SAME_S:
            return SchedulerState("node_lost", reason="the machine was started anew meanwhile", label=label, **times)
        return SchedulerState("failed", reason="its process is gone", label=label, **times)

    @staticmethod
    def _memory(campaign: Campaign) -> Path:
        return campaign.scheduler_folder / "local"

    def _next(self, waiting: Sequence[Cell], running: Sequence[_Running]) -> int | None:
        """Return the place of the next cell that may start."""
        gpus_taken = any(each.cell.gpus for each in running)
        return next((place for place, cell in enumerate(waiting) if not (gpus_taken and cell.gpus)), None)

    def _start(self, campaign: Campaign, cell: Cell, submitted: float) -> _Running:
        log = self._memory(campaign) / f"{cell.cell_id}.log"
        with log.open("wb") as output, signals_deferred():
            try:
                process = subprocess.Popen(
                    campaign.job_command(cell, self._python),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, CACHE_VARIABLE: str(self._cache)},
                )
            except OSError as error:
                raise FleetError(
                    f"The Python {shown(self._python)} that is to run the jobs cannot be started: {error.strerror}. "
                    "Name another: --option python=PATH."
                ) from error
            try:
                self._remember_start(campaign, cell, process.pid, submitted)
            except BaseException:  # nobody would know of it
                _end([process])
                raise
        return _Running(cell, process, now_s())

    def _remember_start(self, campaign: Campaign, cell: Cell, pid: int, submitted: float) -> None:
        said = {
            "state": "running",
            "pid": pid,
            "created": _created(pid),
            "submitted": submitted,
            "started": utc_s(),
            "ended": None,
            "exit_code": None,
            "reason": "",
        }
        _remember(self._memory(campaign) / f"{cell.cell_id}.json", said)

    def _has_ended(self, campaign: Campaign, running: _Running) -> bool:
        """Whether a job has ended; one that is over its time is ended."""
        code = running.process.poll()
        if code is None and now_s() - running.since > running.cell.limit_s:
            _end([running.process])
            self._close(campaign, running, "timeout", f"not done after {running.cell.limit_s:g} s")
            return True
        if code is None:
            return False
        self._close(campaign, running, "completed" if code == 0 else "failed", "")
        return True

    def _end_all(self, campaign: Campaign, running: Sequence[_Running]) -> None:
        with signals_deferred():
            _end([each.process for each in running])
            for each in running:
                with suppress(OSError, ValueError, FileWriteError):  # on a full disk the others are ended all the same
                    self._close(campaign, each, "cancelled", "the command that ran the campaign was ended")

    def _close(self, campaign: Campaign, running: _Running, state: str, reason: str) -> None:
        path = self._memory(campaign) / f"{running.cell.cell_id}.json"
        said = parse_json(read_regular(path).decode("utf-8"))
        changed = {"state": state, "reason": reason, "ended": utc_s(), "exit_code": running.process.returncode}
        _remember(path, {**said, **changed})

    def _lives(self, campaign: Campaign, cell_id: str) -> bool:
        """Whether a cell's job runs: its process is the one that was started, or its lock is held."""
        memory = self._memory(campaign) / f"{cell_id}.json"
        return _is_that_process(memory) or _is_locked(campaign.cell_folder(cell_id) / LOCK_FILE)


def _is_that_process(memory: Path) -> bool:
    """Whether the process that was remembered runs; one that cannot be read is told by the job's lock alone."""
    try:
        said = json.loads(memory.read_text(encoding="utf-8"))
        made = _created(int(said["pid"]))
        return made is not None and abs(made - float(said["created"])) < _SAME_S
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _is_locked(path: Path) -> bool:
    """Whether a job holds its lock."""
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def _is_active(states: Mapping[str, SchedulerState], cell: Cell) -> bool:
    return cell.cell_id in states and states[cell.cell_id].active


def _remember(path: Path, said: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(said) + "\n", "state of a job")


def _created(pid: int) -> float | None:
    """Return when a process was made; ``None`` for one that does not run."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask jobs to end, which end their children first; whatever is left after that is killed."""
    family: list[psutil.Process] = []
    for process in processes:
        try:
            family += psutil.Process(process.pid).children(recursive=True)
            os.kill(process.pid, signal.SIGTERM)
        except (psutil.Error, ProcessLookupError):
            continue
    deadline = now_s() + _GRACE_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - now_s()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for member in family:  # psutil knows a process by when it was made as well, so this meets no other
        try:
            member.kill()
        except psutil.Error:
            continue
