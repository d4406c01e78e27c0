"""Statuses of the jobs of commits, a file a commit: the layout of the bucket ``ossci-job-status``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import Deep500Error, FleetError
from deep500.core.texts import message_of
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_of, head_text
from deep500.fleet.readers._json import document_of
from deep500.fleet.readers._rows import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OssciStatusReader"]

_FOLDERS = ("pr", "master")
_FILE = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.){1,500}"\s*:\s*\{[^{}]{0,2000}?"status"\s*:\s*"')
_STATUSES: dict[str, tuple[str, str | None]] = {
    "success": ("passed", None),
    "failure": ("failed", None),
    "error": ("failed", "error"),
    "pending": ("missing", "pending"),
}


class OssciStatusReader(Reader):
    """A folder with ``pr/*.json`` and ``master/*.json``, or one such file: ``{job: {"status": "success"}, ...}``.

    The key is the job's name as it stands there, with its ``_build`` or ``_test``; the group is the name of the file,
    without its ending. The label ``branch`` is ``pr`` or ``master``. The words are those of GitHub's commit statuses.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is such a file, or the first file of such a folder is."""
        if not path.is_dir():
            return _FILE.match(head_text(head)) is not None
        first = next(_files(path), None)
        if first is None:
            return False
        try:
            return _FILE.match(head_text(head_of(first))) is not None
        except FleetError:
            return False

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the jobs of all commits; a file that cannot be read is counted and loses only itself."""
        rows = Rows(path, report, branch=str)
        files = list(_files(path)) if path.is_dir() else [path]
        if not files:
            raise FleetError(f"It holds no {' and no '.join(f'{name}/*.json' for name in _FOLDERS)}.")
        for file in files:
            where = f"{file.parent.name}/{file.name}"
            try:
                content = document_of(file, report)
            except Deep500Error as error:
                if not path.is_dir():
                    raise
                rows.fault(ProblemKind.MALFORMED, f"{where}: {message_of(error)}")
                continue
            if not isinstance(content, dict):
                rows.fault(ProblemKind.MALFORMED, f"{where} holds no object")
                continue
            branch = file.parent.name if file.parent.name in _FOLDERS else None
            for job, entry in content.items():
                _add(job, entry, file, branch, rows)
        return rows.frame()


def _files(folder: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        if (folder / name).is_dir():
            yield from sorted((folder / name).glob("*.json"))


def _add(job: str, entry: Any, file: Path, branch: str | None, rows: Rows) -> None:
    where = f"{file.name}, {job}"
    if not isinstance(entry, dict) or "status" not in entry:
        rows.fault(ProblemKind.MALFORMED, f"{where} has no status")
        return
    rows.add(
        job,
        file.name.split(".", 1)[0],
        where=where,
        **rows.status(entry["status"], _STATUSES.get, where),
        branch=branch,
    )
