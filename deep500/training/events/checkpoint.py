"""Checkpoints while a training runs, and when it is asked to end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, FileWriteError
from deep500.core.texts import shown_path
from deep500.measure.clock import Stopwatch
from deep500.training.checkpoints._layout import step_folders
from deep500.training.checkpoints.writer import CheckpointWriter
from deep500.training.divergence import non_finite_parameter
from deep500.training.ranks import ALONE, Ranks
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining

__all__ = ["CheckpointEvent"]

_logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: Of several ranks, a second signal within this time is the first one, passed on by a launcher, s.
_PASSED_ON_S = 1.0


class CheckpointEvent(RunnerEvent):
    """Writes a checkpoint every so many steps or epochs, and one in the end.

    A first SIGINT (Ctrl-C) or SIGTERM makes it write one after the step, or the test, that is under way; then the
    training ends as without it, with ``KeyboardInterrupt`` or whatever the process does on that signal. A second one
    acts at once.

    A disk that is full, or a folder that cannot be written to any more, does not end the training: a warning tells that
    the checkpoint was not written, those before it stay, and the next one is tried when it is due. A training whose
    parameters are no finite numbers any more is stopped instead of being kept, so that what was kept before stays.

    Of several ranks each writes its own state into the same checkpoint, and a signal that any of them gets (where ranks
    run apart, rank 0) makes all of them write after the same step and end. Where a rank is lost and the others go
    on, they write what is their own then.

    Attributes:
        writer: Writes the checkpoints.
        written: The folder that was written last, ``None`` before the first.
        failures: Number of checkpoints that could not be written.
    """

    comes_last = True

    def __init__(
        self,
        folder: str | PathLike[str],
        every_steps: int | None = None,
        every_epochs: int | None = None,
        keep: int = 3,
        *,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        """Set where and how often.

        Args:
            folder: Where to; each checkpoint is a folder in it.
            every_steps: Number of steps between two checkpoints.
            every_epochs: Number of epochs between two checkpoints; 1 when neither is given.
            keep: How many of the newest checkpoints stay.
            identity: What training it is; see :class:`CheckpointWriter`.

        Raises:
            CheckpointError: An argument is not accepted.
        """
        if every_steps is None and every_epochs is None:
            every_epochs = 1
        for name, value in (("every_steps", every_steps), ("every_epochs", every_epochs)):
            if value is not None:
                check_count(name, value, least=1, error=CheckpointError)
        self.writer = CheckpointWriter(folder, keep, identity=identity)
        self._every_steps = every_steps
        self._every_epochs = every_epochs
        self.written: Path | None = None
        self.failures = 0
        self._kept: tuple[int, str] | None = None  # steps and outcome of what was written last
        self._signal: int | None = None
        self._previous: dict[int, Any] = {}
        self._since: Stopwatch | None = None  # the signal
        self._ranks: Ranks = ALONE
        self._members: tuple[int, ...] = ()  # who has prepared the folder

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that checkpoints can be made and written, and listen to signals.

        Raises:
            CheckpointError: A part of the training cannot be kept.
            FileWriteError: The folder cannot be written to.
        """
        runner.state()
        self._ranks = runner.optimizer.ranks
        self._prepare()
        self._signal = self._since = None
        later = [path.name for step, path in step_folders(self.writer.folder) if step > training_stats.steps]
        if later and self._ranks.is_first:
            _logger.warning(
                "%s holds %s, which this training, at step %d, does not go on from: it is what the next one would go "
                "on from. Move it away, or use another folder.",
                shown_path(self.writer.folder),
                ", ".join(later[-3:]),
                training_stats.steps,
            )
        if training_stats.steps:  # it goes on from a checkpoint
            self._kept = (training_stats.steps, training_stats.outcome.value)
        self._listen()

    def after_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any], loss: Any
    ) -> None:
        """Write a checkpoint when it is due, or when a signal has asked for the end."""
        is_due = self._every_steps is not None and training_stats.steps % self._every_steps == 0
        self._agree_on_signal()
        if is_due or self._signal is not None:
            self._write(runner, training_stats)
            self._act_on_signal()

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write a checkpoint when a signal has asked for the end."""
        self._agree_on_signal()
        if self._signal is not None:
            self._kept = None  # that of the same step is from before the test
            self._write(runner, training_stats)
            self._act_on_signal()

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write a checkpoint when it is due, or when a signal has asked for the end."""
        is_due = self._every_epochs is not None and (epoch + 1) % self._every_epochs == 0
        self._agree_on_signal()
        if is_due or self._signal is not None:
            self._kept = None
            self._write(runner, training_stats)
            self._act_on_signal()

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write a checkpoint of a training that has ended as planned, and listen to no signal any more."""
        try:
            if training_stats.complete:  # otherwise other ranks may be elsewhere
                if not self._is_diverged(runner):
                    self._write(runner, training_stats)
                self._agree_on_signal()
        finally:
            self._stop_listening()
            self.writer.release()
        self._act_on_signal()

    def _write(self, runner: Trainer, stats: TrainingStatistics) -> None:
        what = (stats.steps, stats.outcome.value)
        if what == self._kept:
            return
        if self._is_diverged(runner):
            raise StopTraining
        runner.optimizer.finish()
        try:
            self.written = self._written(runner, stats)
            self._kept = what
        except FileWriteError as error:
            self.failures += 1
            if not self._ranks.is_first:
                return
            _logger.warning(
                "%s. The training goes on without the checkpoint of step %d; %s.",
                str(error).rstrip("."),
                stats.steps,
                "there is none before it" if self.written is None else f"the last one is {shown_path(self.written)}",
            )

    def _written(self, runner: Trainer, stats: TrainingStatistics) -> Path:
        """Write a checkpoint; where ranks are lost meanwhile, that of the ranks that are left."""
        while True:
            if self._members != self._ranks.members:
                self._prepare()
            members = self._ranks.members
            try:
                return self.writer.write(runner.state(), stats.steps, self._ranks)
            except FileWriteError:
                if self._ranks.members == members:
                    raise

    def _prepare(self) -> None:
        self.writer.prepare(self._ranks)
        self._members = self._ranks.members

    def _is_diverged(self, runner: Trainer) -> bool:
        """Whether a parameter is no finite number any more, which is told."""
        found = self._ranks.gathered(non_finite_parameter(runner.executor.network))
        name = next((name for name in found if name is not None), None)
        if name is not None and self._ranks.is_first:
            _logger.warning(
                "The training diverged: the parameter %r is not finite. No checkpoint of it is written.", name
            )
        return name is not None

    def _listen(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python gives signals to the main thread alone
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):
                self._previous[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        if self._signal is None:
            self._signal, self._since = number, Stopwatch()
            if self._ranks.is_first:
                _logger.warning("%s: a checkpoint is written after this step, then the training ends.", _name(number))
        elif self._ranks.size == 1 or self._since is None or self._since.elapsed_s() > _PASSED_ON_S:
            self._stop_listening()
            signal.raise_signal(number)

    def _agree_on_signal(self) -> None:
        """Learn of a signal that another rank got."""
        if self._ranks.size > 1:
            self._signal = self._ranks.largest_in_step(self._signal or 0) or None

    def _stop_listening(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _act_on_signal(self) -> None:
        """Let the process do what it does on the signal that was put off."""
        if self._signal is not None:
            number, self._signal = self._signal, None
            self._stop_listening()
            signal.raise_signal(number)
            raise KeyboardInterrupt  # where nothing else ends the training


def _name(number: int) -> str:
    return signal.Signals(number).name
