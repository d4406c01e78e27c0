"""TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import PathLike
from typing import Any

from deep500.core.errors import FileWriteError, TrainingError
from deep500.core.requirement import Requirement
from deep500.core.stateful import State
from deep500.core.texts import shown, shown_path
from deep500.training.events._sink import SinkEvent
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["TensorBoardEvent"]


class TensorBoardEvent(SinkEvent):
    """Writes event files that TensorBoard shows, with the library tensorboardX (extra ``tensorboard``).

    Tags: ``loss/training``, ``loss/test``, ``accuracy_percent/...``, ``hyperparameters/...`` and
    ``speed/samples_per_s``, each over the number of steps that are done. A training that goes on from a checkpoint
    writes a further file in the same folder, which takes the place of what was written after the checkpoint.
    """

    what = "TensorBoard files"
    requirement = Requirement("tensorboardX", "tensorboard", ("tensorboardX",))

    def __init__(self, folder: str | PathLike[str], every_steps: int = 1) -> None:
        """Set where to.

        Args:
            folder: Folder of the run; it is made. ``tensorboard --logdir`` takes it, or one above it.
            every_steps: Number of steps between two losses that are written.

        Raises:
            TrainingError: An argument is not accepted.
        """
        if not isinstance(folder, (str, PathLike)) or not os.fspath(folder):
            raise TrainingError(f"The folder was given as {shown(folder)}; accepted are paths.")
        super().__init__(every_steps)
        self.folder = os.fspath(folder)
        self._writer: Any = None
        self._purge_step: int | None = None

    def _prepare(self, runner: Trainer, stats: TrainingStatistics) -> None:
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise _refused(self.folder, error.strerror or str(error)) from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise _refused(self.folder, "it may not be written to")
        self._writer = None
        self._purge_step = stats.steps + 1 if stats.steps else None

    def _send(self, step: int, values: dict[str, float]) -> None:
        writer = self._open()
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    def _write(self, kind: str, rows: list[dict[str, Any]]) -> None:
        super()._write(kind, rows)
        if self._writer is not None:
            self._writer.flush()

    def _open(self) -> Any:
        if self._writer is None:
            from tensorboardX import SummaryWriter

            # Files are named by the second in which they were made; this one comes after the earlier one of the same.
            suffix = "" if self._purge_step is None else f".{self._purge_step:012d}"
            self._writer = SummaryWriter(logdir=self.folder, purge_step=self._purge_step, filename_suffix=suffix)
            if self._purge_step is None:
                lines = [f"    {name}: {value}" for name, value in self._description.items()]
                self._writer.add_text("training", "\n".join(lines))
        return self._writer

    def _end(self, stats: TrainingStatistics) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _own_restore(self, state: Mapping[str, Any]) -> None:
        self._purge_step = int(state["step"]) + 1

    def _own_state(self) -> State:
        return {"step": self._stats.steps if self._stats is not None else 0}


def _refused(folder: str, why: str) -> FileWriteError:
    return FileWriteError(f"TensorBoard's files cannot be written to {shown_path(folder)}: {why}.")
