"""A progress bar in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["TerminalBarEvent"]

#: Reading the loss waits for the device, so it is read this seldom.
_REFRESH_S = 0.25


class TerminalBarEvent(RunnerEvent, OptimizerEvent):
    """Shows epoch, minibatches, loss, throughput and the time that is left of a pass, on stderr.

    It is silent when stderr is not a terminal. One line is drawn, and what remains of it after each pass is its last
    state. The loss is read four times a second at most.
    """

    def __init__(self, total_epochs: int = -1, console: Console | None = None) -> None:
        """Set what is shown.

        Args:
            total_epochs: Number of epochs, by default that of the run.
            console: Where to draw, by default on stderr.
        """
        self._total_epochs = total_epochs
        self._console = console
        self._stats: TrainingStatistics | None = None
        self._epoch = 0
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._pending = 0
        self._batch_size = 0
        self._drawn_s = 0.0
        self._start_s = 0.0
        self._batches = 0

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Find out whether there is a terminal."""
        self._stats = training_stats
        if self._console is None and sys.stderr.isatty():
            from rich.console import Console

            self._console = Console(stderr=True)

    def before_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Note the epoch."""
        self._epoch = epoch

    def before_training_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin the line of a training pass."""
        total = self._total_epochs if self._total_epochs >= 0 else training_stats.epochs_planned
        self._open(f"Epoch {self._epoch + 1}/{total}", sampler)

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is not None and self._advance():
            self._draw(f"loss {float(executor.to_numpy(loss)):.4f}")

    def after_training_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """End the line with the epoch's mean loss."""
        record = training_stats.epochs[-1].training
        self._close("" if record is None or record.loss is None else f"loss {record.loss:.4f}")

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin the line of a test pass."""
        self._open("Test", sampler)

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is not None and self._advance():
            self._draw("")

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """End the line with the accuracy."""
        accuracy = training_stats.test_accuracy
        self._close("" if accuracy is None else f"accuracy {accuracy:.2f} %")

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Give the terminal back, also when the training was interrupted in the middle of a pass."""
        self._close("")

    def _open(self, title: str, sampler: Sampler) -> None:
        self._close("")
        if self._console is None:
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[value]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
            auto_refresh=False,  # a thread of its own would disturb what is measured
        )
        self._task = self._progress.add_task(title, total=len(sampler), value="", rate="")
        self._progress.start()
        self._batch_size = sampler.batch_size
        self._batches = self._pending = 0
        self._start_s = time.perf_counter()
        self._drawn_s = 0.0

    def _advance(self) -> bool:
        """Count a minibatch; return whether it is time to draw."""
        self._batches += 1
        self._pending += 1
        return time.perf_counter() - self._drawn_s >= _REFRESH_S

    def _draw(self, value: str) -> None:
        if self._progress is None or self._task is None:
            return
        self._drawn_s = time.perf_counter()
        rate = self._batches * self._batch_size / max(self._drawn_s - self._start_s, 1e-9)
        self._progress.update(self._task, advance=self._pending, value=value, rate=f"{rate:,.0f} samples/s")
        self._pending = 0
        self._progress.refresh()

    def _close(self, value: str) -> None:
        if self._progress is None:
            return
        self._draw(value)
        self._progress.stop()
        self._progress = self._task = None
