"""Weights & Biases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import PathLike
from typing import Any

from deep500.core.errors import TrainingError
from deep500.core.requirement import Requirement
from deep500.core.stateful import State
from deep500.core.texts import message_of, shown
from deep500.training.events._sink import SinkEvent
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["WandbEvent"]

_MODES = ("online", "offline", "disabled")


class WandbEvent(SinkEvent):
    """Sends a run to Weights & Biases, or keeps it in a folder for ``wandb sync`` (extra ``wandb``).

    What the training is becomes the run's configuration; losses, accuracies, hyperparameters and throughput its
    history, each row with ``step``, the number of steps that are done, which is the axis of all charts. A training that
    goes on from a checkpoint goes on with the same run; what was sent after the checkpoint stays beside it.

    Attributes:
        run_id: The run's identifier; ``None`` before the training.
    """

    what = "Weights & Biases run"
    requirement = Requirement("wandb", "wandb", ("wandb",))

    def __init__(
        self,
        project: str = "deep500",
        name: str | None = None,
        mode: str | None = None,
        folder: str | PathLike[str] | None = None,
        every_steps: int = 1,
    ) -> None:
        """Set where to.

        Args:
            project: Name of the project.
            name: Name of the run; by default Weights & Biases chooses one.
            mode: ``"online"``, ``"offline"`` or ``"disabled"``; by default what the environment says (``WANDB_MODE``).
            folder: Where runs are kept; by default ``./wandb``.
            every_steps: Number of steps between two losses that are sent.

        Raises:
            TrainingError: An argument is not accepted.
        """
        if mode is not None and mode not in _MODES:
            raise TrainingError(f"mode was given as {shown(mode)}; accepted are {', '.join(_MODES)}.")
        super().__init__(every_steps)
        self.project = project
        self.name = name
        self.mode = mode
        self.folder = None if folder is None else os.fspath(folder)
        self.run_id: str | None = None
        self._run: Any = None

    def _prepare(self, runner: Trainer, stats: TrainingStatistics) -> None:
        self.run_id, self._run = None, None
        if not stats.steps:
            try:
                self._open()
            except Exception as error:  # not signed in, no network, a folder that cannot be written to
                raise TrainingError(f"Weights & Biases cannot begin a run: {message_of(error)}") from error

    def _open(self) -> Any:
        if self._run is None:
            import wandb

            self._run = wandb.init(
                project=self.project,
                name=self.name,
                mode=self.mode,  # type: ignore[arg-type, unused-ignore] # one of _MODES
                dir=self.folder,
                id=self.run_id,
                resume="allow" if self.run_id is not None else None,
                config=dict(self._description),
            )
            self.run_id = str(self._run.id)
            self._run.define_metric("step")
            self._run.define_metric("*", step_metric="step")
        return self._run

    def _send(self, step: int, values: dict[str, float]) -> None:
        # Its own counter only grows, so the step is a number like the others.
        self._open().log({"step": step, **values})

    def _end(self, stats: TrainingStatistics) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.finish(exit_code=0 if stats.complete else 1)

    def _own_state(self) -> State:
        return {"run_id": self.run_id}

    def _own_restore(self, state: Mapping[str, Any]) -> None:
        self.run_id = state["run_id"]
