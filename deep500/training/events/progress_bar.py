"""A progress bar in the terminal."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.measure import clock
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

#: An estimate of more seconds than this says nothing.
_LONGEST_LEFT_S = 1e8

#: Narrower terminals, in characters, get neither bar nor rate.
_WIDE = 78


class TerminalBarEvent(RunnerEvent, OptimizerEvent):
    """Shows epoch, minibatches, loss, throughput and the time that is left of the training, on stderr.

    It is silent when stderr is not a terminal. One line moves; it is taken away in the end, and what stays is a line
    for each epoch, with its loss and test accuracy. The loss is read four times a second at most.
    """

    def __init__(self, total_epochs: int = -1, console: Console | None = None) -> None:
        """Set what is shown.

        Args:
            total_epochs: Number of epochs, by default that of the run.
            console: Where to draw, by default on stderr.
        """
        self._total_epochs = total_epochs
        self._console = console
        self._epochs = 0
        self._epoch: int | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        # Not yet the time: a recipe's hash covers what its events hold.
        self._start_ns = self._pass_start_ns = self._epoch_start_ns = self._drawn_ns = 0
        self._batch_size = 0
        self._pass_batches = 0
        self._batches = 0  # of the whole training
        self._planned_batches = 0

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Begin the line, where there is a terminal."""
        console = self._console
        if console is None and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True)
        if console is None:
            return
        self._epochs = self._total_epochs if self._total_epochs >= 0 else training_stats.epochs_planned
        tests = 0 if runner.validation_sampler is None else len(runner.validation_sampler)
        self._planned_batches = training_stats.epochs_planned * (len(runner.train_sampler) + tests)
        self._batches = 0
        self._epoch = None
        self._start_ns = clock.now_ns()
        self._progress = _line(console)
        self._task = self._progress.add_task("", visible=False, value="", rate="", left="")
        self._progress.start()

    def before_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Note the epoch."""
        self._epoch = epoch
        self._epoch_start_ns = clock.now_ns()

    def before_training_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin a training pass."""
        self._begin("Train", sampler)

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is not None and self._advance():
            self._draw(f"loss {float(executor.to_numpy(loss)):.4f}")

    def after_training_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Show the epoch's mean loss."""
        record = training_stats.epochs[-1].training
        self._draw("" if record is None or record.loss is None else f"loss {record.loss:.4f}")

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin a test pass."""
        self._begin("Test", sampler)

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is not None and self._advance():
            self._draw("")

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Show the accuracy; of a test before training, leave a line."""
        accuracy = training_stats.test_accuracy
        value = "" if accuracy is None else f"accuracy {accuracy:.2f} %"
        self._draw(value)
        if self._epoch is None:
            self._leave("Before training", value)

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Leave a line with what the epoch gave and how long it took."""
        record = training_stats.epochs[-1]
        parts = [f"loss {record.training.loss:.4f}"] if record.training and record.training.loss is not None else []
        if record.test is not None and record.test.accuracy_percent is not None:
            parts.append(f"test accuracy {record.test.accuracy_percent:.2f} %")
        self._leave(self._title(), *parts, f"{(clock.now_ns() - self._epoch_start_ns) / 1e9:.1f} s")

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Take the line away and give the terminal back, also when the training was interrupted or failed."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = None

    def _title(self) -> str:
        if self._epoch is None:
            return "Before training"
        return f"Epoch {self._epoch + 1:>{len(str(self._epochs))}}/{self._epochs}"

    def _begin(self, kind: str, sampler: Sampler) -> None:
        if self._progress is None or self._task is None:
            return
        self._batch_size = sampler.batch_size
        self._pass_batches = 0
        self._pass_start_ns = clock.now_ns()
        title = f"{self._title()} {kind:<5}"
        self._progress.update(self._task, description=title, total=len(sampler), completed=0, visible=True)

    def _advance(self) -> bool:
        """Count a minibatch; return whether it is time to draw."""
        self._pass_batches += 1
        self._batches += 1
        return clock.now_ns() - self._drawn_ns >= _REFRESH_S * 1e9

    def _draw(self, value: str) -> None:
        if self._progress is None or self._task is None:
            return
        self._drawn_ns = now_ns = clock.now_ns()
        rate = 1e9 * self._pass_batches * self._batch_size / max(now_ns - self._pass_start_ns, 1)
        ahead = max(self._planned_batches - self._batches, 0)
        left_s = (now_ns - self._start_ns) / 1e9 / max(self._batches, 1) * ahead
        self._progress.update(
            self._task,
            completed=self._pass_batches,
            value=value,
            rate=f"{rate:,.0f} samples/s",
            left=f"{datetime.timedelta(seconds=round(left_s))} left" if left_s < _LONGEST_LEFT_S else "",
        )
        self._progress.refresh()

    def _leave(self, *parts: str) -> None:
        if self._progress is not None:
            self._progress.console.print("  ".join(filter(None, parts)), markup=False, highlight=False, soft_wrap=True)


def _line(console: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn

    is_wide = console.width >= _WIDE
    columns: list[ProgressColumn] = [TextColumn("{task.description}")]
    if is_wide:
        columns.append(BarColumn(bar_width=None))
    columns += [MofNCompleteColumn(), TextColumn("{task.fields[value]}")]
    if is_wide:
        columns.append(TextColumn("{task.fields[rate]}"))
    columns.append(TextColumn("{task.fields[left]}"))
    return Progress(
        *columns,
        console=console,
        expand=is_wide,  # the bar takes what the texts leave
        transient=True,
        auto_refresh=False,  # a thread of its own would disturb what is measured
        # What an event prints goes where it was meant to go, also when that is a file.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )
