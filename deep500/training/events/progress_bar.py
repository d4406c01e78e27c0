"""A progress bar in the terminal."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
    for each epoch, with its loss and test accuracy. The loss is read four times a second at most. The time that is left
    follows from the training's budget: for epochs, steps and samples from the time that minibatches took so far, for
    seconds from the clock of the training.
    """

    reports = True
    may_stop = False

    def __init__(self, total_epochs: int = -1, console: Console | None = None) -> None:
        """Set what is shown.

        Args:
            total_epochs: Number of epochs, by default that of the run.
            console: Where to draw, by default on stderr.
        """
        self._total_epochs = total_epochs
        self._console = console
        self._epochs: int | None = 0
        self._epoch: int | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        # Not yet the time: a recipe's hash covers what its events hold.
        self._start_ns = self._epoch_start_ns = self._drawn_ns = 0
        self._training = self._pass = _Pass("Train", 0, 0, 0)
        self._batches = 0  # since this process trains
        self._ahead = 0  # minibatches that were ahead then
        self._limit_s: float | None = None
        self._trained_s = 0.0  # of the passes over the training set that have ended

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Begin the line, where there is a terminal."""
        console = self._console
        if console is None and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True)
        if console is None:
            return
        self._epochs = self._total_epochs if self._total_epochs >= 0 else training_stats.epochs_planned
        self._limit_s = training_stats.budget.get("time_limit_s")
        self._ahead = _minibatches_ahead(runner, training_stats)
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
        total = len(sampler)
        if training_stats.steps_planned is not None:  # the last pass may end early
            total = min(total, sampler.position + training_stats.steps_planned - training_stats.steps)
        self._trained_s = training_stats.training_s
        self._training = _Pass("Train", total, sampler.batch_size, clock.now_ns(), sampler.position, sampler.position)
        self._begin(self._training)

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is None:
            return
        if self._pass is not self._training:  # a test between two steps is over
            self._training.aside_ns += clock.now_ns() - self._pass.start_ns
            self._begin(self._training)
        if self._advance():
            self._draw(f"loss {float(executor.to_numpy(loss)):.4f}")

    def after_training_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Show the epoch's mean loss."""
        record = training_stats.epochs[-1].training
        self._trained_s = training_stats.training_s
        self._draw("" if record is None or record.loss is None else f"loss {record.loss:.4f}")

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Begin a test pass."""
        self._begin(_Pass("Test", len(sampler), sampler.batch_size, clock.now_ns()))

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Draw the line anew, when it is time."""
        if self._progress is not None and self._advance():
            self._draw("")

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Show the accuracy; of a test before training, or on a third set in the end, leave a line."""
        last = training_stats.final_test
        accuracy = training_stats.test_accuracy if last is None else last.accuracy_percent
        value = "" if accuracy is None else f"accuracy {accuracy:.2f} %"
        self._draw(value)
        if self._epoch is None:
            self._leave("Before training", value)
        elif last is not None:
            self._leave("Test set", value)

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
        if self._epochs is None:  # a budget of seconds
            return f"Epoch {self._epoch + 1}"
        return f"Epoch {self._epoch + 1:>{len(str(self._epochs))}}/{self._epochs}"

    def _begin(self, one: _Pass) -> None:
        self._pass = one
        if self._progress is None or self._task is None:
            return
        title = f"{self._title()} {one.kind:<5}"
        self._progress.update(self._task, description=title, total=one.total, completed=one.batches, visible=True)

    def _advance(self) -> bool:
        """Count a minibatch; return whether it is time to draw."""
        self._pass.batches += 1
        self._batches += 1
        return clock.now_ns() - self._drawn_ns >= _REFRESH_S * 1e9

    def _draw(self, value: str) -> None:
        if self._progress is None or self._task is None:
            return
        self._drawn_ns = now_ns = clock.now_ns()
        one, left_s = self._pass, self._left_s(now_ns)
        samples = (one.batches - one.first) * one.batch_size
        rate = 1e9 * samples / max(now_ns - one.start_ns - one.aside_ns, 1)
        self._progress.update(
            self._task,
            completed=one.batches,
            value=value,
            rate=f"{rate:,.0f} samples/s",
            left=f"{datetime.timedelta(seconds=round(left_s))} left" if left_s < _LONGEST_LEFT_S else "",
        )
        self._progress.refresh()

    def _left_s(self, now_ns: int) -> float:
        """Return an estimate of the seconds that the training still takes."""
        if self._limit_s is None:
            ahead = max(self._ahead - self._batches, 0)
            return (now_ns - self._start_ns) / 1e9 / max(self._batches, 1) * ahead
        running_ns = 0
        if self._pass is self._training:  # the clock of the training stands still during tests
            running_ns = now_ns - self._training.start_ns - self._training.aside_ns
        return max(self._limit_s - self._trained_s - running_ns * 1e-9, 0.0)

    def _leave(self, *parts: str) -> None:
        if self._progress is not None:
            self._progress.console.print("  ".join(filter(None, parts)), markup=False, highlight=False, soft_wrap=True)


@dataclass
class _Pass:
    """A pass over a set, as far as it is shown.

    Attributes:
        kind: What is done with the set.
        total: Number of its minibatches.
        batch_size: Samples of each.
        start_ns: When it began, in this process.
        batches: How many minibatches are done.
        first: How many were done when it began.
        aside_ns: Time of tests within it.
    """

    kind: str
    total: int
    batch_size: int
    start_ns: int
    batches: int = 0
    first: int = 0
    aside_ns: int = 0


def _minibatches_ahead(runner: Trainer, stats: TrainingStatistics) -> int:
    """Return how many minibatches are ahead, those of the tests at the ends of epochs included; 0 if unknown."""
    if stats.steps_planned is None or stats.epochs_planned is None:
        return 0
    tests = 0 if runner.validation_sampler is None else len(runner.validation_sampler)
    last = 0 if runner.test_sampler is None else len(runner.test_sampler)
    return stats.steps_planned - stats.steps + (stats.epochs_planned - stats.epochs_done) * tests + last


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
