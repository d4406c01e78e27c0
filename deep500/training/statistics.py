"""What a training measured: one record an epoch, and one for each test between two steps."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deep500.core.errors import CheckpointError
from deep500.core.stateful import State

__all__ = ["EpochRecord", "Evaluation", "Outcome", "PassRecord", "TrainingStatistics"]


class Outcome(str, enum.Enum):
    """How a training ended."""

    RUNNING = "running"
    COMPLETED = "completed"  #: its budget was used up
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
            between them included, tests between them not.
        loss: Mean loss a sample; ``None`` when it was not computed. In training, each minibatch's loss is from before
            its update.
        accuracy_percent: Right classifications in per cent of all, 0 to 100; ``None`` when they were not counted.
        step_losses: The loss of each minibatch, in order; empty when it was not computed.
        complete: Whether the pass ended as planned: with the end of the set, or of the training's budget.
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

    def state(self) -> State:
        """Return a snapshot; see :meth:`TrainingStatistics.state`."""
        return {**vars(self), "step_losses": np.array(self.step_losses, np.float64)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> PassRecord | None:
        """Return the record of a snapshot; ``None`` for ``None``."""
        return None if state is None else cls(**{**state, "step_losses": np.asarray(state["step_losses"]).tolist()})


@dataclass
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: Its number, from 0.
        training: The pass over the training set; ``None`` until it has ended.
        test: The pass over the test set after it; ``None`` without a test set, or when the training ended before.
        steps: Number of steps of the whole training at the end of its pass over the training set.
        training_s: Seconds of training, all passes over the training set together, at the end of that pass.
    """

    epoch: int
    training: PassRecord | None = None
    test: PassRecord | None = None
    steps: int = 0
    training_s: float = 0.0

    def to_dict(self, *, step_losses: bool = False) -> dict[str, Any]:
        """Return the record in JSON's types; see :meth:`TrainingStatistics.to_dict`."""
        return {
            "epoch": self.epoch,
            "training": _dict(self.training, step_losses),
            "test": _dict(self.test, step_losses),
        }

    def state(self) -> State:
        """Return a snapshot; see :meth:`TrainingStatistics.state`."""
        return {**vars(self), "training": _state(self.training), "test": _state(self.test)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> EpochRecord:
        """Return the record of a snapshot."""
        passes = {name: PassRecord.from_state(state[name]) for name in ("training", "test")}
        return cls(**{**state, **passes})


@dataclass
class Evaluation:
    """One test and when it was made.

    Attributes:
        step: Number of steps that were done.
        epoch: Number of the epoch, from 0; ``-1`` before the training.
        training_s: Seconds of training before it; tests take none of them.
        result: The pass over the test set.
    """

    step: int
    epoch: int
    training_s: float
    result: PassRecord

    def to_dict(self, *, step_losses: bool = False) -> dict[str, Any]:
        """Return the record in JSON's types; see :meth:`TrainingStatistics.to_dict`."""
        return {**vars(self), "result": _dict(self.result, step_losses)}

    def state(self) -> State:
        """Return a snapshot; see :meth:`TrainingStatistics.state`."""
        return {**vars(self), "result": self.result.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Evaluation:
        """Return the record of a snapshot."""
        result = PassRecord.from_state(state["result"])
        assert result is not None
        return cls(**{**state, "result": result})


@dataclass
class TrainingStatistics:
    """What a training measured.

    The time of training and the time of testing are kept apart, also where a test is made between two steps.

    Attributes:
        epochs_planned: Number of epochs that the budget is, the last one perhaps in part; ``None`` for a budget of
            seconds.
        train_batch_size: Number of samples a minibatch of the training set.
        test_batch_size: Number of samples a minibatch of the test set; ``None`` without a test set.
        initial_test: The pass over the validation set before training, when it was asked for.
        epochs: One record for each epoch that was begun.
        outcome: How the training ended.
        steps_planned: Number of steps that the budget is; ``None`` for a budget of seconds.
        budget: What was asked for, such as ``{"epochs": 3}``.
        steps: Number of steps that were done.
        samples: Number of samples that they trained on.
        epochs_done: Number of epochs that have ended, their tests included.
        evaluations: The tests between two steps.
        final_test: The pass over a third set, in the end.
        running_s: Seconds of the pass over the training set that is under way, up to the last test within it.
    """

    epochs_planned: int | None
    train_batch_size: int
    test_batch_size: int | None = None
    initial_test: PassRecord | None = None
    epochs: list[EpochRecord] = field(default_factory=list)
    outcome: Outcome = Outcome.RUNNING
    steps_planned: int | None = None
    budget: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    samples: int = 0
    epochs_done: int = 0
    evaluations: list[Evaluation] = field(default_factory=list)
    final_test: PassRecord | None = None
    running_s: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether the training ended as planned: with its budget, or because an event stopped it."""
        return self.outcome in (Outcome.COMPLETED, Outcome.STOPPED)

    @property
    def all_evaluations(self) -> list[Evaluation]:
        """All tests on the validation set in order: before the training, between steps, and after the epochs."""
        first = [] if self.initial_test is None else [Evaluation(0, -1, 0.0, self.initial_test)]
        ends = [Evaluation(e.steps, e.epoch, e.training_s, e.test) for e in self.epochs if e.test is not None]
        return first + sorted([*self.evaluations, *ends], key=lambda evaluation: evaluation.step)

    @property
    def train_accuracy(self) -> float | None:
        """Accuracy in per cent of the last pass over the training set that was completed and counted."""
        return _last_accuracy([record.training for record in self.epochs])

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy in per cent of the last pass over the validation set that was completed and counted."""
        return _last_accuracy([evaluation.result for evaluation in self.all_evaluations])

    @property
    def training_s(self) -> float:
        """Seconds of all passes over the training set, without the tests between steps."""
        ended = math.fsum(record.training.duration_s for record in self.epochs if record.training)
        return ended + (self.running_s if self.epochs and self.epochs[-1].training is None else 0.0)

    @property
    def testing_s(self) -> float:
        """Seconds of all tests."""
        tests = [*(evaluation.result for evaluation in self.all_evaluations), self.final_test]
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
            "budget": dict(self.budget),
            "epochs_planned": self.epochs_planned,
            "steps": self.steps,
            "samples": self.samples,
            "train_batch_size": self.train_batch_size,
            "test_batch_size": self.test_batch_size,
            "training_s": self.training_s,
            "testing_s": self.testing_s,
            "initial_test": _dict(self.initial_test, step_losses),
            "epochs": [record.to_dict(step_losses=step_losses) for record in self.epochs],
            "evaluations": [evaluation.to_dict(step_losses=step_losses) for evaluation in self.evaluations],
            "final_test": _dict(self.final_test, step_losses),
        }

    def state(self) -> State:
        """Return a snapshot; see :mod:`deep500.core.stateful`."""
        return {
            **vars(self),
            "budget": dict(self.budget),
            "outcome": self.outcome.value,
            "initial_test": _state(self.initial_test),
            "final_test": _state(self.final_test),
            "epochs": [record.state() for record in self.epochs],
            "evaluations": [evaluation.state() for evaluation in self.evaluations],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TrainingStatistics:
        """Return the statistics of a snapshot.

        Raises:
            CheckpointError: It is no snapshot of statistics.
        """
        try:
            return cls(
                **{
                    **state,
                    "outcome": Outcome(state["outcome"]),
                    "initial_test": PassRecord.from_state(state["initial_test"]),
                    "final_test": PassRecord.from_state(state["final_test"]),
                    "epochs": [EpochRecord.from_state(record) for record in state["epochs"]],
                    "evaluations": [Evaluation.from_state(evaluation) for evaluation in state["evaluations"]],
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint holds no statistics of a training that this version reads: {error}."
            ) from error


def _last_accuracy(passes: Sequence[PassRecord | None]) -> float | None:
    counted = [p.accuracy_percent for p in passes if p and p.complete and p.accuracy_percent is not None]
    return counted[-1] if counted else None


def _dict(record: PassRecord | None, step_losses: bool) -> dict[str, Any] | None:
    return None if record is None else record.to_dict(step_losses=step_losses)


def _state(record: PassRecord | None) -> State | None:
    return None if record is None else record.state()


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
