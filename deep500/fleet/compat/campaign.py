"""A campaign: a folder that holds all that is planned, run and found of one matrix."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from deep500.core.errors import FileWriteError, FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown, shown_path
from deep500.fleet.compat.cell import Cell, DroppedCell

__all__ = ["CAMPAIGN_FILE", "Campaign", "make_folder"]

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
            make_folder(folder)
            left = [folder / name for name in _LEFT_BY_ATTEMPT if (folder / name).exists()]
            if left:
                older = folder / "attempts" / str(self.attempts(cell) + 1)
                make_folder(older)
                _move(left, older)
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
        """Return the number of the last of the older attempts of a cell; 0 where there are none."""
        older = self.cell_folder(cell) / "attempts"
        numbers = [int(path.name) for path in older.iterdir() if path.name.isdecimal()] if older.is_dir() else []
        return max(numbers, default=0)

    def write(self) -> None:
        """Write ``campaign.json``.

        Raises:
            FileWriteError: It or its folder cannot be written.
        """
        make_folder(self.folder)
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
        try:
            place = Path(folder).resolve()
            path = place / CAMPAIGN_FILE if str(folder) else Path()  # an empty text is not the folder that we are in
            data = read_regular(path)
        except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a null byte
            raise FleetError(
                f"There is no campaign in {shown_path(folder) or repr('')}: {CAMPAIGN_FILE} cannot be read "
                f"({getattr(error, 'strerror', None) or message_of(error)}). Make one: deep500 fleet compat plan "
                "MATRIX --campaign FOLDER."
            ) from error
        try:
            text = data.decode("utf-8")
            content = parse_json(text)
            json.dumps(content, ensure_ascii=False).encode()  # no half of a character, which could not be written
        except ValueError as error:
            raise FleetError(f"{shown_path(path)} cannot be read: {message_of(error)}") from error
        return _campaign_of(place, content)

    def _copy_job(self) -> None:
        """Copy what jobs run. A job that runs meanwhile keeps the file that it has open."""
        probes = self.job_folder / "probes"
        make_folder(probes)
        package = resources.files("deep500.fleet.compat")
        for name in _JOB_FILES:
            _copy(package.joinpath(name).read_text(encoding="utf-8"), self.job_folder / name)
        clock = resources.files("deep500.measure").joinpath("clock.py").read_text(encoding="utf-8")
        _copy(clock, self.job_folder / "clock.py")  # of the standard library, too
        for probe in package.joinpath("probes").iterdir():
            if probe.name.endswith(".py.tmpl"):
                _copy(probe.read_text(encoding="utf-8"), probes / probe.name.removesuffix(".tmpl"))


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it.

    Raises:
        FileWriteError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileWriteError(f"The folder {shown_path(folder)} cannot be made: {error.strerror or error}") from error


def _move(paths: Iterable[Path], folder: Path) -> None:
    for path in paths:
        try:
            path.rename(folder / path.name)
        except OSError as error:
            said = f"{shown_path(path)} cannot be moved to {shown_path(folder)}: {error.strerror or error}"
            raise FileWriteError(said) from error


def _copy(text: str, target: Path) -> None:
    if not target.exists() or target.read_bytes() != text.encode("utf-8"):
        write_atomically(target, text)


def _probe(cell: Cell) -> dict[str, str]:
    """Return how the job finds the user's own snippets."""
    return {"probe": probe_name(cell.probe)} if cell.probe is not None and cell.probe.endswith(".py") else {}


def probe_name(path: str) -> str:
    """Return the name under which the user's own snippets lie among a campaign's probes."""
    return f"own_{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


#: What each field of ``campaign.json`` is.
_FIELDS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "created": (int, float),
    "matrix": (dict,),
    "matrix_hash": (str,),
    "cells": (list,),
    "dropped": (list,),
    "estimate": (dict,),
    "notes": (list,),
    "backend": (str, type(None)),
    "options": (dict,),
}


def _campaign_of(folder: Path, content: Any) -> Campaign:
    place = shown_path(folder / CAMPAIGN_FILE)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FleetError(f"{place} is no campaign of format {_FORMAT}; plan it anew with this version.")
    for name, kinds in _FIELDS.items():
        if name not in content:
            raise FleetError(f"{place} lacks the field {name!r}; plan the campaign anew.")
        if not isinstance(content[name], kinds) or isinstance(content[name], bool):
            raise FleetError(f"{place} holds {shown(content[name])} as {name!r}; plan the campaign anew.")
    texts = [content["name"], content["matrix_hash"], *content["notes"], *content["options"].values()]
    wrong = [text for text in texts if not isinstance(text, str) or not text.isprintable()]
    if wrong:
        raise FleetError(f"{place} holds {shown(wrong[0])} where a text of one line is needed; plan the campaign anew.")
    try:
        cells = tuple(Cell.from_dict(cell) for cell in content["cells"])
        twice = [name for name, count in Counter(cell.cell_id for cell in cells).items() if count > 1]
        if twice:
            raise FleetError(f"The cell {twice[0]!r} is there twice; plan the campaign anew.")
        dropped = tuple(DroppedCell.from_dict(item) for item in content["dropped"])
    except FleetError as error:
        raise FleetError(f"{place}: {error}") from error
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
