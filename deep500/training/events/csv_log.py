"""A log as comma-separated values."""

from __future__ import annotations

import csv
import io
from os import PathLike

from deep500.training.events._log import LogEvent
from deep500.training.events._recording import Row

__all__ = ["CSVLogEvent"]

_STEP = ("step", "epoch", "samples", "loss")
_EPOCH = (
    *("epoch", "step", "training_loss", "training_accuracy_percent", "test_loss", "test_accuracy_percent"),
    *("training_s", "test_s", "samples_per_s"),
)


class CSVLogEvent(LogEvent):
    """Writes a CSV file with a row for each step or each epoch.

    Columns of steps: ``step`` (how many are done), ``epoch`` (from 0), ``samples``, ``loss`` (from before the step's
    update), the optimizer's hyperparameters by name, ``elapsed_s`` (since the training began, tests included). Columns
    of epochs: ``epoch``, ``step``, losses, accuracies in per cent, seconds and ``samples_per_s``, and the
    hyperparameters. What there is not is empty.

    A training that goes on from a checkpoint cuts the file to the rows that it had then and appends. Rows are written
    in blocks, at the latest every two seconds, before each checkpoint and in the end.

    Source: RFC 4180, with a line feed as the end of a line.
    """

    what = "CSV log"

    def __init__(self, path: str | PathLike[str], every: str = "epoch", every_steps: int = 1) -> None:
        """Set where to, and what a row is; see :class:`LogEvent`.

        Args:
            path: The file.
            every: ``"step"`` or ``"epoch"``.
            every_steps: Number of steps between two rows of steps.
        """
        super().__init__(path, every, every_steps)

    def _columns(self) -> tuple[str, ...]:
        return (*_STEP, *self._names, "elapsed_s") if self.every == "step" else (*_EPOCH, *self._names)

    def _header(self) -> str:
        return _rows([self._columns()])

    def _lines(self, kind: str, rows: list[Row]) -> str:
        return _rows([[row.get(name) for name in self._columns()] for row in rows]) if kind == self.every else ""


def _rows(rows: list[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    return text.getvalue()
