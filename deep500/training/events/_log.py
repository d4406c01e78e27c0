"""Logs: files that grow by a line a row, and are cut where a training goes on from an earlier checkpoint."""

from __future__ import annotations

import abc
import contextlib
import logging
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any, BinaryIO

from deep500.core.errors import FileWriteError, TrainingError
from deep500.core.stateful import State
from deep500.core.texts import shown, shown_path
from deep500.training.events._recording import Recording, Row
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["LogEvent"]

_logger = logging.getLogger(__name__)


class LogEvent(Recording):
    """Writes lines to a file, each block of them at once.

    A training that begins replaces an older file. One that goes on from a checkpoint cuts the file to what it had then,
    and appends. Where the file cannot be opened, the training does not begin.
    """

    def __init__(self, path: str | PathLike[str], every: str, every_steps: int = 1) -> None:
        """Set where to, and what a row is.

        Args:
            path: The file.
            every: ``"step"`` or ``"epoch"``: what has a row.
            every_steps: Number of steps between two rows of steps.

        Raises:
            TrainingError: An argument is not accepted.
        """
        if not isinstance(path, (str, PathLike)) or not os.fspath(path):
            raise TrainingError(f"The {self.what}'s path was given as {shown(path)}; accepted are paths of files.")
        if every not in ("step", "epoch"):
            raise TrainingError(f"every was given as {shown(every)}; accepted are 'step' and 'epoch'.")
        super().__init__(every_steps if every == "step" else None)
        self.path = os.fspath(path)
        self.every = every
        self._file: BinaryIO | None = None

    @abc.abstractmethod
    def _lines(self, kind: str, rows: list[Row]) -> str:
        """Return rows as lines, empty for a kind that is not written."""

    def _header(self) -> str:
        """Return what a file begins with."""
        return ""

    def _begin(self, runner: Trainer, stats: TrainingStatistics) -> None:
        self._close()
        try:
            # A training that goes on has its file yet; what is too much is cut when the state is restored.
            self._file = open(self.path, "ab" if stats.steps else "wb")  # noqa: SIM115 - until the training ends
            if not self._file.seekable():
                raise FileWriteError(f"The {self.what} cannot be written to {shown_path(self.path)}: it is no file.")
            if self._file.tell() == 0:
                self._append(self._header())
        except OSError as error:
            self._abandon()
            if isinstance(error, FileWriteError):
                raise
            why = error.strerror or error
            raise FileWriteError(f"The {self.what} cannot be written to {shown_path(self.path)}: {why}") from error

    def _write(self, kind: str, rows: list[Row]) -> None:
        self._append(self._lines(kind, rows))

    def _end(self, stats: TrainingStatistics) -> None:
        self._close()

    def _abandon(self) -> None:
        with contextlib.suppress(OSError):  # what is buffered cannot be written either
            self._close()

    def _own_state(self) -> State:
        return {"size_bytes": self._file.tell() if self._file is not None else None}

    def _own_restore(self, state: Mapping[str, Any]) -> None:
        size, file = state["size_bytes"], self._file
        if size is None or file is None:
            return
        present = file.seek(0, os.SEEK_END)
        if present < size:
            _logger.warning(
                "The %s %s has %d bytes and had %d at the checkpoint: lines of earlier steps are missing.",
                self.what, shown_path(self.path), present, size,
            )  # fmt: skip
            return
        file.truncate(size)
        file.seek(0, os.SEEK_END)

    def _append(self, text: str) -> None:
        if self._file is not None and text:
            self._file.write(text.encode("utf-8"))
            self._file.flush()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
