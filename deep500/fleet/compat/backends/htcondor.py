"""A pool under HTCondor: a DAG with one node for each cell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, one_line, shown_path
from deep500.fleet.compat.backend import Backend, SchedulerState, Tell
from deep500.fleet.compat.backends._commands import run_command
from deep500.fleet.compat.backends._htcondor_files import (
    DAG_FILE,
    NODES_FILE,
    OPTIONS,
    HTCondorOptions,
    write_dag_files,
)
from deep500.fleet.compat.backends._htcondor_states import states_of
from deep500.fleet.compat.backends._lock import locked
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell import Cell
from deep500.fleet.libraries import HTCONDOR

__all__ = ["HTCondorBackend"]

#: Written before a DAG is submitted, and again when its number is known.
_SUBMITTED_FILE = "submitted.json"

#: What DAGMan writes when it begins.
_SIGNS = ("dagman.out", "nodes.log", "lock")


class HTCondorBackend(Backend):
    """Hands cells to HTCondor: one DAG for each time that a campaign is run, in ``scheduler/dag-<number>``.

    Files are transferred: the pool need not share the campaign's folder. Its files were checked by HTCondor's own
    parsers; it was never run against a pool.
    """

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return the options."""
        return dict(OPTIONS)

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options.

        Raises:
            FleetError: One is not accepted.
        """
        super().__init__(options)
        self._options = HTCondorOptions.of(self.options)

    def generate(self, campaign: Campaign, cells: Sequence[Cell]) -> list[Path]:
        """Write a DAG; those that were written before and not submitted go.

        Raises:
            FleetError: A submit description cannot hold what is needed.
        """
        folder = campaign.scheduler_folder
        with locked(folder):
            for old in _dags(folder):
                if not _is_submitted(old):
                    shutil.rmtree(old)
            if not cells:
                return []
            number = max((int(old.name.removeprefix("dag-")) for old in _dags(folder)), default=0) + 1
            made = folder / f"dag-{number}"
            write_dag_files(campaign, made, f"deep500-{uuid.uuid4().hex[:12]}", cells, self._options)
        return sorted(path for path in made.iterdir() if path.is_file())

    def submit(self, campaign: Campaign, cells: Sequence[Cell], tell: Tell) -> None:
        """Submit the DAG that was written last, unless it has been.

        Raises:
            FleetError: There is no access point of HTCondor here, or it did not take the DAG.
        """
        folder = campaign.scheduler_folder
        with locked(folder) as lock:
            waiting = [each for each in _dags(folder) if not _is_submitted(each)]
            for dag in waiting[-1:] if cells else []:
                tell(f"Submitting {shown_path(os.path.relpath(dag))}")
                batch = _json(dag / NODES_FILE)["batch"]
                begun = {"time": datetime.now(timezone.utc).timestamp(), "cluster": None}
                write_atomically(dag / _SUBMITTED_FILE, json.dumps(begun) + "\n")
                command = ["condor_submit_dag", "-force", "-batch-name", batch, DAG_FILE]
                try:
                    done = _run(command, dag, (lock,))
                    if done.returncode != 0:
                        raise FleetError(
                            f"condor_submit_dag did not take the DAG: {one_line(done.stderr + done.stdout)}"
                        )
                except FleetError:
                    (dag / _SUBMITTED_FILE).unlink()
                    raise
                number = re.search(r"submitted to cluster (\d+)", done.stdout)
                known = {**begun, "cluster": int(number[1]) if number else None}
                write_atomically(dag / _SUBMITTED_FILE, json.dumps(known) + "\n")

    def states(self, campaign: Campaign) -> dict[str, SchedulerState]:
        """Return the states of the cells of all DAGs that were submitted; of the last one for each cell.

        Raises:
            FleetError: What was remembered cannot be read.
        """
        found: dict[str, SchedulerState] = {}
        folder = campaign.scheduler_folder
        if not folder.is_dir():
            return found
        HTCONDOR.require("Reading a campaign that ran on HTCondor")
        with locked(folder):
            for dag in _dags(folder):
                if _is_submitted(dag):
                    found.update(states_of(dag, _json(dag / NODES_FILE)["nodes"], _submitted_at(dag)))
        return found


def _dags(folder: Path) -> list[Path]:
    """Return the folders of DAGs, oldest first."""
    found = [path for path in folder.glob("dag-*") if path.name.removeprefix("dag-").isdecimal()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("dag-")))


def _is_submitted(dag: Path) -> bool:
    """Whether a DAG was submitted, also by hand, or by a process that was killed before it could say so.

    Where nobody can tell, it was: the cells are not run twice.
    """
    if any((dag / f"{DAG_FILE}.{sign}").exists() for sign in _SIGNS):
        return True
    if not (dag / _SUBMITTED_FILE).exists():
        return False
    if _json(dag / _SUBMITTED_FILE)["cluster"] is not None:
        return True
    batch = _json(dag / NODES_FILE)["batch"]
    try:
        asked = _run(["condor_q", "-constraint", f'JobBatchName == "{batch}"', "-af", "ClusterId"], dag)
    except FleetError:
        return True
    if asked.returncode != 0 or asked.stdout.strip():
        return True
    (dag / _SUBMITTED_FILE).unlink()
    return False


def _submitted_at(dag: Path) -> float:
    """Return when a DAG was submitted; when it was written, where somebody did it by hand."""
    if (dag / _SUBMITTED_FILE).exists():
        return float(_json(dag / _SUBMITTED_FILE)["time"])
    return (dag / DAG_FILE).stat().st_mtime


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = parse_json(read_regular(path).decode("utf-8"))
        content.get("")
        return content
    except (OSError, ValueError, AttributeError) as error:
        raise FleetError(
            f"{shown_path(path)}, which tells the jobs of a DAG, cannot be read: {message_of(error)}. The jobs go on; "
            "condor_q lists them."
        ) from error


def _run(command: list[str], folder: Path, kept: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    absent = (
        "an access point of HTCondor is needed where a campaign is submitted. The files are written; submit them "
        f"there: cd {shown_path(folder)} && condor_submit_dag {DAG_FILE}."
    )
    return run_command(command, absent, folder, kept=kept)
