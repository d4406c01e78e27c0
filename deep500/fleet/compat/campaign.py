"""A campaign: a folder that holds all that is planned, run and found of one matrix."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown_path
from deep500.fleet.compat.cell import Cell, DroppedCell

__all__ = ["CAMPAIGN_FILE", "Campaign"]

CAMPAIGN_FILE = "campaign.json"

#: The version of the folder's layout.
_FORMAT = 1

#: What a job runs, copied into the campaign: plain files of the standard library.
_JOB_FILES = ("cell_job.py", "environments.py", "probe.py", "exchange.py", "job_record.py", "processes.py")

#: What an attempt leaves in its cell's folder; a new attempt moves it to ``attempts/<number>``.
_LEFT_BY_ATTEMPT = ("record.json", "stdout.txt", "stderr.txt", "lock.txt", "recipe.json")


@dataclass
class Campaign:
    """What is planned and how it is run; ``campaign.json`` holds it.

    Attributes:
        folder: The folder, absolute.
        name: The group of its outcomes.
        created: When it was planned, in seconds since 1970 (UTC).
        matrix: The matrix, as it was read.
        matrix_hash: SHA-256 of it.
        cells: What is tried, in order.
        dropped: What is not, with the reason.
        estimate: What it may cost.
        notes: What could not be found out when it was planned.
        backend: The name of the backend; ``None`` before it is run.
        options: The backend's options.
    """

    folder: Path
    name: str
    created: float
    matrix: Mapping[str, Any]
    matrix_hash: str
    cells: tuple[Cell, ...]
    dropped: tuple[DroppedCell, ...] = ()
    estimate: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    backend: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def scheduler_folder(self) -> Path:
        """Where the backend writes what it generates and remembers."""
        return self.folder / "scheduler"

    @property
    def job_folder(self) -> Path:
        """Where the files lie that a job runs."""
        return self.folder / "job"

    def cell_folder(self, cell: Cell | str) -> Path:
        """Return the folder of a cell, or of the cell of this id."""
        return self.folder / "cells" / (cell if isinstance(cell, str) else cell.cell_id)

    def job_command(self, cell: Cell, python: str = "python3", shared: bool = True) -> list[str]:
        """Return the command of a cell's job. It ends within :attr:`Cell.limit_s`, by itself.

        Args:
            cell: The cell.
            python: A Python of 3.10 or newer, which need not be that of the cell.
            shared: Whether the job sees the campaign's folder. Otherwise the job's files and the cell's
                ``cell.json`` and ``requirements.txt`` are to be brought to its folder as ``job`` and beside it, and
                ``record.json``, ``stdout.txt`` and ``stderr.txt`` to be brought back from there.
        """
        if shared:
            return [python, str(self.job_folder / "cell_job.py"), str(self.cell_folder(cell))]
        return [python, "job/cell_job.py", "."]

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Write what jobs need; what an older attempt left in a cell's folder is moved to ``attempts/<number>``.

        Raises:
            FileWriteError: A file cannot be written.
        """
        self._copy_job()
        for cell in cells:
            folder = self.cell_folder(cell)
            folder.mkdir(parents=True, exist_ok=True)
            left = [folder / name for name in _LEFT_BY_ATTEMPT if (folder / name).exists()]
            if left:
                older = folder / "attempts" / str(self.attempts(cell) + 1)
                older.mkdir(parents=True)
                for path in left:
                    path.rename(older / path.name)
            self._copy_probe(cell)
            write_atomically(folder / "requirements.txt", _lines([*cell.pip_options, *cell.requirements]))
            content = {**cell.to_dict(), **_probe(cell), "campaign": self.name, "attempt": self.attempts(cell) + 1}
            write_atomically(folder / "cell.json", json.dumps(content, indent=2) + "\n")

    def _copy_probe(self, cell: Cell) -> None:
        """Copy the user's own snippets to where jobs look for them: under the name of their file.

        Raises:
            FleetError: The file is gone.
        """
        if cell.probe is None or not cell.probe.endswith(".py"):
            return
        try:
            text = read_regular(cell.probe).decode("utf-8", "replace")
        except OSError as error:
            raise FleetError(f"The probe {shown_path(cell.probe)} cannot be read: {error.strerror}.") from error
        _copy(text, self.job_folder / "probes" / f"{probe_name(cell.probe)}.py")

    def attempts(self, cell: Cell) -> int:
        """Return how many older attempts of a cell there are."""
        older = self.cell_folder(cell) / "attempts"
        return sum(1 for path in older.iterdir() if path.name.isdigit()) if older.is_dir() else 0

    def write(self) -> None:
        """Write ``campaign.json``.

        Raises:
            FileWriteError: It cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "format": _FORMAT,
            "name": self.name,
            "created": self.created,
            "matrix": self.matrix,
            "matrix_hash": self.matrix_hash,
            "cells": [cell.to_dict() for cell in self.cells],
            "dropped": [dropped.to_dict() for dropped in self.dropped],
            "estimate": self.estimate,
            "notes": list(self.notes),
            "backend": self.backend,
            "options": dict(self.options),
        }
        write_atomically(self.folder / CAMPAIGN_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def run_by(self, backend: str, options: Mapping[str, str]) -> Campaign:
        """Return the campaign with the backend that runs it."""
        return dataclasses.replace(self, backend=backend, options=dict(options))

    @classmethod
    def read(cls, folder: str | Path) -> Campaign:
        """Return the campaign of a folder.

        Raises:
            FleetError: There is none, or its file cannot be read.
        """
        place = Path(folder).resolve()
        path = place / CAMPAIGN_FILE
        try:
            content = parse_json(read_regular(path).decode("utf-8"))
        except OSError as error:
            raise FleetError(
                f"There is no campaign in {shown_path(folder)}: {CAMPAIGN_FILE} cannot be read ({error.strerror}). "
                "Make one: deep500 fleet compat plan MATRIX --campaign FOLDER."
            ) from error
        except ValueError as error:
            raise FleetError(f"{shown_path(path)} cannot be read: {message_of(error)}") from error
        return _campaign_of(place, content)

    def _copy_job(self) -> None:
        """Copy what jobs run. A job that runs meanwhile keeps the file that it has open."""
        probes = self.job_folder / "probes"
        probes.mkdir(parents=True, exist_ok=True)
        package = resources.files("deep500.fleet.compat")
        for name in _JOB_FILES:
            _copy(package.joinpath(name).read_text(encoding="utf-8"), self.job_folder / name)
        clock = resources.files("deep500.measure").joinpath("clock.py").read_text(encoding="utf-8")
        _copy(clock, self.job_folder / "clock.py")  # of the standard library, too
        for probe in package.joinpath("probes").iterdir():
            if probe.name.endswith(".py.tmpl"):
                _copy(probe.read_text(encoding="utf-8"), probes / probe.name.removesuffix(".tmpl"))


def _copy(text: str, target: Path) -> None:
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        write_atomically(target, text)


def _probe(cell: Cell) -> dict[str, str]:
    """Return how the job finds the user's own snippets."""
    return {"probe": probe_name(cell.probe)} if cell.probe is not None and cell.probe.endswith(".py") else {}


def probe_name(path: str) -> str:
    """Return the name under which the user's own snippets lie among a campaign's probes."""
    return f"own_{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _campaign_of(folder: Path, content: Any) -> Campaign:
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FleetError(
            f"{shown_path(folder / CAMPAIGN_FILE)} is no campaign of format {_FORMAT}; plan it anew with this version."
        )
    try:
        cells = tuple(Cell.from_dict(cell) for cell in content["cells"])
        names = [cell.cell_id for cell in cells]
        twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if twice is not None:
            raise FleetError(f"The cell {twice!r} is there twice; plan the campaign anew.")
        dropped = tuple(
            DroppedCell(Cell.from_dict(item["cell"]), item["source"], item["reason"]) for item in content["dropped"]
        )
        return Campaign(
            folder,
            content["name"],
            float(content["created"]),
            content["matrix"],
            content["matrix_hash"],
            cells,
            dropped,
            content["estimate"],
            tuple(content["notes"]),
            content["backend"],
            content["options"],
        )
    except FleetError as error:
        raise FleetError(f"{shown_path(folder / CAMPAIGN_FILE)}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FleetError(f"{shown_path(folder / CAMPAIGN_FILE)} lacks a field, or it is wrong: {error}.") from error
