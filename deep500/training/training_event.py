"""Hooks into a training: its epochs, test passes, optimizer steps and samplers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from deep500.core.event import Event, StopRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.networks.graph_executor import GraphExecutor
    from deep500.training.sampler import Sampler
    from deep500.training.statistics import TrainingStatistics
    from deep500.training.trainer import Trainer

__all__ = ["OptimizerEvent", "RunnerEvent", "SamplerEvent", "StopTraining", "TrainingEvent"]


class StopTraining(StopRun):
    """Raised by an event, at any hook, to end the training; its statistics so far are kept and returned."""


class TrainingEvent(Event):
    """A listener of a training.

    One whose course depends on what it was told before has ``state()`` and ``restore(state)``
    (:class:`deep500.core.stateful.Stateful`), which checkpoints keep. A training that goes on from a checkpoint tells
    its events first that it begins (``before_training``; within an epoch ``before_epoch``, within the training set
    ``before_training_set`` too; ``training_stats.steps`` is above 0 then), and restores their states afterwards.

    Attributes:
        needs_training_accuracy: Whether the trainer must count the training accuracy, which costs a copy of each
            step's outputs to the host.
        comes_last: Whether it is told after all events that do not say so, as one must that keeps what they hold.
        reports: Whether it does nothing but tell of the training, such as in a file. A recipe on several ranks has it
            on rank 0 alone; all other events are on every rank, where ``StopTraining`` counts on rank 0 alone.
        may_stop: Whether it may raise ``StopTraining``. Where no event does, ranks need not agree on it in each step.
        needs_whole_test: Whether it must be told of all minibatches of a test; rank 0 tests on all of them then,
            instead of each rank on its part.
    """

    needs_training_accuracy: bool = False
    comes_last: ClassVar[bool] = False
    reports: ClassVar[bool] = False
    may_stop: ClassVar[bool] = True
    needs_whole_test: ClassVar[bool] = False


class OptimizerEvent(TrainingEvent):
    """A listener of the optimizer's steps."""

    def before_optimizer_step(self, executor: GraphExecutor, inputs: Mapping[str, Any]) -> None:
        """Called before each step with the minibatch."""

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Called after each step.

        Args:
            executor: What ran the network.
            outputs: Outputs and losses by name, from before the update, as the framework's tensors.
            loss: The loss among them, as the framework's tensor; reading its value may wait for the device.
        """


class SamplerEvent(TrainingEvent):
    """A listener of samplers. A trainer attaches it to its training and its validation sampler."""

    def on_sampler_reset(self, sampler: Sampler) -> None:
        """Called when a sampler has begun its next epoch."""

    def before_sampling(self, sampler: Sampler, minibatch_size: int) -> None:
        """Called before a minibatch is read.

        Args:
            sampler: The sampler.
            minibatch_size: Number of samples in the minibatch.
        """

    def after_sampling(self, sampler: Sampler, samples: Mapping[str, NDArray[Any]]) -> None:
        """Called with each minibatch, after its transformations."""


class RunnerEvent(TrainingEvent):
    """A listener of the trainer's loop. Epochs and steps are counted from 0, steps over the whole training."""

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called once before anything else."""

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called once at the end, also of a training that was stopped, interrupted or failed.

        ``training_stats.outcome`` says which.
        """

    def before_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called before each epoch."""

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called after each epoch, when its training and its test are in the statistics."""

    def before_training_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Called before the training set is gone through."""

    def after_training_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called after the training set was gone through."""

    def before_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, inputs: Mapping[str, Any]
    ) -> None:
        """Called before each step on the training set with the minibatch; before the optimizer's listeners."""

    def after_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any], loss: Any
    ) -> None:
        """Called after each step, when ``training_stats.steps`` counts it; after the optimizer's listeners.

        Args:
            step: The step's number.
            runner: The trainer.
            training_stats: What was measured so far.
            outputs: Outputs and losses by name, from before the update, as the framework's tensors.
            loss: The loss among them, as the framework's tensor; reading its value may wait for the device.
        """

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Called before the test set is gone through, at the end of an epoch or between two steps."""

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Called after the test set was gone through."""

    def before_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, inputs: Mapping[str, Any]) -> None:
        """Called before each minibatch of the test set is run."""

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Called after each minibatch of the test set with the network's outputs."""
