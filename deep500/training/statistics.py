"""What a training measured: one record an epoch."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EpochRecord", "Outcome", "PassRecord", "TrainingStatistics"]


class Outcome(str, enum.Enum):
    """How a training ended."""

    RUNNING = "running"
    COMPLETED = "completed"  #: all epochs were run
    STOPPED = "stopped"  #: an event raised StopTraining
    INTERRUPTED = "interrupted"  #: by the user, with Ctrl-C
    FAILED = "failed"  #: an exception ended it


@dataclass
class PassRecord:
    """One pass over a training or test set.

    Attributes:
        batches: Number of minibatches.
        samples: Number of samples.
        duration_s: Seconds from before the first minibatch was read until the device had finished the last one, events
            between them included.
        loss: Mean loss a sample; ``None`` when it was not computed. In training, each minibatch's loss is from before
            its update.
        accuracy_percent: Right classifications in per cent of all, 0 to 100; ``None`` when they were not counted.
        step_losses: The loss of each minibatch, in order; empty when it was not computed.
        complete: Whether the pass reached the end of the set.
    """

    batches: int
    samples: int
    duration_s: float
    loss: float | None = None
    accuracy_percent: float | None = None
    step_losses: Sequence[float] = ()
    complete: bool = True

    def to_dict(self, *, step_losses: bool = False) -> dict[str, Any]:
        """Return the record in JSON's types; see :meth:`TrainingStatistics.to_dict`."""
        record = {
            "batches": self.batches,
            "samples": self.samples,
            "duration_s": self.duration_s,
            "loss": _number(self.loss),
            "accuracy_percent": self.accuracy_percent,
            "complete": self.complete,
        }
        return record | ({"step_losses": [_number(loss) for loss in self.step_losses]} if step_losses else {})


@dataclass
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: Its number, from 0.
        training: The pass over the training set; ``None`` until it has ended.
        test: The pass over the test set after it; ``None`` without a test set, or when the training ended before.
    """

    epoch: int
    training: PassRecord | None = None
    test: PassRecord | None = None

    def to_dict(self, *, step_losses: bool = False) -> dict[str, Any]:
        """Return the record in JSON's types; see :meth:`TrainingStatistics.to_dict`."""
        return {
            "epoch": self.epoch,
            "training": None if self.training is None else self.training.to_dict(step_losses=step_losses),
            "test": None if self.test is None else self.test.to_dict(step_losses=step_losses),
        }


@dataclass
class TrainingStatistics:
    """What a training measured.

    Attributes:
        epochs_planned: Number of epochs that were asked for.
        train_batch_size: Number of samples a minibatch of the training set.
        test_batch_size: Number of samples a minibatch of the test set; ``None`` without a test set.
        initial_test: The pass over the test set before training, when it was asked for.
        epochs: One record for each epoch that was begun.
        outcome: How the training ended.
    """

    epochs_planned: int
    train_batch_size: int
    test_batch_size: int | None = None
    initial_test: PassRecord | None = None
    epochs: list[EpochRecord] = field(default_factory=list)
    outcome: Outcome = Outcome.RUNNING

    @property
    def complete(self) -> bool:
        """Whether the training ended as planned: with its last epoch, or because an event stopped it."""
        return self.outcome in (Outcome.COMPLETED, Outcome.STOPPED)

    @property
    def train_accuracy(self) -> float | None:
        """Accuracy in per cent of the last pass over the training set that was completed and counted."""
        return _last_accuracy([record.training for record in self.epochs])

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy in per cent of the last pass over the test set that was completed and counted."""
        return _last_accuracy([self.initial_test, *(record.test for record in self.epochs)])

    @property
    def training_s(self) -> float:
        """Seconds of all passes over the training set."""
        return math.fsum(record.training.duration_s for record in self.epochs if record.training)

    @property
    def testing_s(self) -> float:
        """Seconds of all passes over the test set."""
        tests = [self.initial_test, *(record.test for record in self.epochs)]
        return math.fsum(test.duration_s for test in tests if test)

    def to_dict(self, *, step_losses: bool = False) -> dict[str, Any]:
        """Return the statistics in JSON's types.

        JSON has no infinities and no NaN; a loss that is one is the text ``"inf"``, ``"-inf"`` or ``"nan"``, which
        Python's ``float`` reads.

        Args:
            step_losses: Whether to include the loss of each minibatch.
        """
        return {
            "outcome": self.outcome.value,
            "complete": self.complete,
            "epochs_planned": self.epochs_planned,
            "train_batch_size": self.train_batch_size,
            "test_batch_size": self.test_batch_size,
            "training_s": self.training_s,
            "testing_s": self.testing_s,
            "initial_test": None if self.initial_test is None else self.initial_test.to_dict(step_losses=step_losses),
            "epochs": [record.to_dict(step_losses=step_losses) for record in self.epochs],
        }


def _last_accuracy(passes: Sequence[PassRecord | None]) -> float | None:
    counted = [p.accuracy_percent for p in passes if p and p.complete and p.accuracy_percent is not None]
    return counted[-1] if counted else None


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
