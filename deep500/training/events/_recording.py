"""What is written down of a training while it runs: rows of its steps, tests and epochs."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.core.texts import message_of
from deep500.measure import clock
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.events._watched import new_evaluation
from deep500.training.optimizer import Optimizer
from deep500.training.statistics import EpochRecord, Evaluation, TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent

__all__ = ["Recording", "Row"]

_logger = logging.getLogger(__name__)

#: One row: numbers by name.
Row = dict[str, Any]

#: Losses are read, which waits for the device, when so many steps were done or so much time is over.
_BLOCK_STEPS, _BLOCK_S = 64, 2.0


class Recording(RunnerEvent, OptimizerEvent):
    """Collects rows, and hands them on in blocks.

    The losses of steps are kept as the framework's own scalars and read in blocks, so that no step waits for the
    device; before a checkpoint everything is handed on. Where a row cannot be written any more, a warning says so once,
    and the training goes on without.

    A subclass implements :meth:`_begin`, :meth:`_write` and :meth:`_end`.
    """

    #: What is written, for messages.
    what: ClassVar[str]

    reports = True
    may_stop = False

    def __init__(self, every_steps: int | None = 1) -> None:
        """Set how often.

        Args:
            every_steps: Number of steps between two rows of steps; ``None`` for none of these.

        Raises:
            TrainingError: It is not accepted.
        """
        if every_steps is not None:
            check_count("every_steps", every_steps, least=1, error=TrainingError)
        self._every_steps = every_steps
        self._is_broken = False
        self._begun = False
        self._pending: list[tuple[Row, Any]] = []
        self._stats: TrainingStatistics | None = None
        self._optimizer: Optimizer | None = None
        self._names: tuple[str, ...] = ()
        self._epochs_written = 0
        self._start_ns = self._block_ns = 0
        self._earlier_s = 0.0

    # What a subclass implements.

    @abc.abstractmethod
    def _begin(self, runner: Trainer, stats: TrainingStatistics) -> None:
        """Check, before a training, that rows can be written; what is raised ends it before it begins."""

    @abc.abstractmethod
    def _write(self, kind: str, rows: list[Row]) -> None:
        """Write rows of a kind: ``"step"``, ``"test"`` or ``"epoch"``."""

    def _end(self, stats: TrainingStatistics) -> None:
        """Close what is open."""

    def _abandon(self) -> None:
        """Let go of what is open after a failure."""

    def _own_state(self) -> State:
        """Return what the subclass remembers."""
        return {}

    def _own_restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`_own_state` returned."""

    # The hooks.

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that rows can be written.

        Raises:
            Deep500Error: They cannot.
        """
        self._is_broken, self._begun = False, False
        self._pending = []
        self._optimizer = runner.optimizer
        values = {name: getattr(runner.optimizer, name, None) for name in runner.optimizer.hyperparameter_names}
        self._names = tuple(name for name, value in values.items() if isinstance(value, (int, float)))
        self._epochs_written = sum(record.training is not None for record in training_stats.epochs)
        self._earlier_s, self._start_ns = 0.0, clock.now_ns()
        self._begin(runner, training_stats)
        self._stats, self._begun = training_stats, True

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Keep the step's row."""
        stats = self._stats
        if stats is None or self._every_steps is None or stats.steps % self._every_steps:
            return
        now_ns = clock.now_ns()
        if not self._pending:
            self._block_ns = now_ns
        row = {
            "step": stats.steps,
            "epoch": stats.epochs_done,
            "samples": stats.samples,
            "loss": None,
            **self._hyperparameters(),
            "elapsed_s": self._elapsed_s(now_ns),
        }
        self._pending.append((row, loss))
        if len(self._pending) >= _BLOCK_STEPS or now_ns - self._block_ns > _BLOCK_S * 1e9:
            self._flush(executor)

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write the row of a test."""
        evaluation = new_evaluation(training_stats)
        if evaluation is not None:
            self._flush(runner.executor)
            self._guarded(lambda: self._write("test", [_test_row(evaluation)]))

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write the row of an epoch."""
        self._flush(runner.executor)
        self._write_epochs(training_stats)

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Write what is left, and close."""
        if self._begun:
            self._flush(runner.executor)
            self._write_epochs(training_stats)
            self._guarded(lambda: self._end(training_stats))
            if self._is_broken:
                self._abandon()
        self._begun, self._stats, self._optimizer = False, None, None

    def state(self) -> State:
        """Return a snapshot, when all rows so far are written."""
        if self._begun and self._optimizer is not None:
            self._flush(self._optimizer.executor)
        return {
            "epochs_written": self._epochs_written,
            "elapsed_s": self._elapsed_s(clock.now_ns()),
            **self._own_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot: what was written after it is taken back, where that can be."""
        self._epochs_written = int(state["epochs_written"])
        self._earlier_s, self._start_ns = float(state["elapsed_s"]), clock.now_ns()
        self._guarded(lambda: self._own_restore(state))

    def _hyperparameters(self) -> Row:
        return {name: getattr(self._optimizer, name) for name in self._names}

    def _elapsed_s(self, now_ns: int) -> float:
        return self._earlier_s + (now_ns - self._start_ns) * 1e-9 if self._begun else self._earlier_s

    def _flush(self, executor: GraphExecutor) -> None:
        pending, self._pending = self._pending, []
        if not pending or self._is_broken:
            return
        rows = [{**row, "loss": float(executor.to_numpy(loss))} for row, loss in pending]
        self._guarded(lambda: self._write("step", rows))

    def _write_epochs(self, stats: TrainingStatistics) -> None:
        """Write the epochs that are not written yet, that of a training which was stopped within it too."""
        records = [record for record in stats.epochs[self._epochs_written :] if record.training is not None]
        self._epochs_written += len(records)
        rows = [{**_epoch_row(record), **self._hyperparameters()} for record in records]
        if rows:
            self._guarded(lambda: self._write("epoch", rows))

    def _guarded(self, write: Callable[[], None]) -> None:
        if self._is_broken:
            return
        try:
            write()
        except Exception as error:  # noqa: BLE001 - a full disk, or whatever a library raises: no reason to stop
            self._is_broken = True
            _logger.warning(
                "The %s cannot be written any more: %s. The training goes on without it.",
                self.what, message_of(error).rstrip("."),
            )  # fmt: skip


def _test_row(evaluation: Evaluation) -> Row:
    return {
        "step": evaluation.step,
        "epoch": evaluation.epoch,
        "test_loss": evaluation.result.loss,
        "test_accuracy_percent": evaluation.result.accuracy_percent,
        "training_s": evaluation.training_s,
        "test_s": evaluation.result.duration_s,
    }


def _epoch_row(record: EpochRecord) -> Row:
    training, test = record.training, record.test
    assert training is not None
    return {
        "epoch": record.epoch,
        "step": record.steps,
        "training_loss": training.loss,
        "training_accuracy_percent": training.accuracy_percent,
        "test_loss": test.loss if test else None,
        "test_accuracy_percent": test.accuracy_percent if test else None,
        "training_s": training.duration_s,
        "test_s": test.duration_s if test else None,
        "samples_per_s": training.samples / training.duration_s if training.duration_s > 0 else None,
    }
