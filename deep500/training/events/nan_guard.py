"""Stopping a training whose numbers are not finite any more, with the first tensor that was not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.core.texts import message_of
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.events._culprit import Culprit, Replay, ReplayedStep, bad_parameter, search_test
from deep500.training.hyperparameters import flag
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent, StopTraining

__all__ = ["NaNGuardEvent"]

_logger = logging.getLogger(__name__)


class NaNGuardEvent(RunnerEvent, OptimizerEvent):
    """Stops the training when a loss or a parameter is not finite, and names the first tensor that was not.

    Losses are looked at in blocks, so that no step waits for the device. Between blocks, parameters and the optimizer's
    state are copied to the host, and looked at: a loss need not show them, since some operators, such as TensorFlow's
    MaxPool, take NaN for nothing. When something is not finite, the steps of the block are run again from
    there, and looked at one by one: is a sample of the minibatch not finite, an output of a node of the network, a
    gradient, or, after an update, a parameter? The network is left with the parameters from before the step in which
    it was.

    After a test whose loss is not finite, its minibatches are looked at in the same way.

    On several ranks steps are not run again, since each of them is an exchange: only the step, or the parameter, is
    named.

    Attributes:
        culprit: What was found; ``None`` while all is finite.
    """

    def __init__(self, check_every_steps: int = 100, locate: bool = True) -> None:
        """Set how often.

        Args:
            check_every_steps: Number of steps of a block.
            locate: Whether to keep what is needed to run a block again. Without, nothing is copied, losses alone are
                looked at, and only the step is named.

        Raises:
            TrainingError: An argument is not accepted.
        """
        self.check_every_steps = check_count("check_every_steps", check_every_steps, least=1, error=TrainingError)
        self.locate = flag("locate", locate)
        self.culprit: Culprit | None = None
        self._runner: Trainer | None = None
        self._begin_block()

    def _begin_block(self) -> None:
        self._steps: list[ReplayedStep] = []
        self._losses: list[Any] = []
        self._snapshot: tuple[State, State] | None = None

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start anew."""
        self.culprit = None
        self._runner = runner
        self._begin_block()

    def before_optimizer_step(self, executor: GraphExecutor, inputs: Mapping[str, Any]) -> None:
        """Note what the step is about to be run with."""
        runner = self._runner
        if runner is None or not self.locate:
            return
        optimizer = runner.optimizer
        if self._snapshot is None:
            self._snapshot = (executor.state(), optimizer.state())
        values = {name: getattr(optimizer, name) for name in optimizer.hyperparameter_names}
        self._steps.append(ReplayedStep(runner.train_sampler.position - 1, values))

    def after_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any], loss: Any
    ) -> None:
        """Look at a block of losses, when it is full."""
        self._losses.append(loss)
        if len(self._losses) >= self.check_every_steps:
            self._look(runner, training_stats, goes_on=True)

    def after_training_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Look at the losses that are left: minibatches of this epoch can be read again now."""
        self._look(runner, training_stats)

    def before_test_set(self, runner: Trainer, training_stats: TrainingStatistics, sampler: Sampler) -> None:
        """Look at the losses that are left."""
        self._look(runner, training_stats)

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Look at the test's loss."""
        is_last = training_stats.final_test is not None
        evaluations = training_stats.all_evaluations
        result = training_stats.final_test if is_last else (evaluations[-1].result if evaluations else None)
        sampler = runner.test_sampler if is_last else runner.validation_sampler
        if result is None or sampler is None or result.loss is None or _is_finite(result.loss):
            return
        found = Culprit("loss", runner.optimizer.loss, f"the loss of a test after step {training_stats.steps}")
        if self.locate:
            try:
                found = search_test(runner, sampler) or found
            except Exception as error:  # noqa: BLE001 - the data set's or the framework's, asked for an explanation
                _logger.debug("The test was not run again: %s", message_of(error))
        self._stop(found)

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Let go of what was kept."""
        self._runner = None
        self._begin_block()

    def _look(self, runner: Trainer, stats: TrainingStatistics, *, goes_on: bool = False) -> None:
        if not self._losses:
            return
        losses = [float(runner.executor.to_numpy(loss)) for loss in self._losses]
        steps, snapshot = self._steps, self._snapshot
        self._begin_block()
        bad = next((index for index, loss in enumerate(losses) if not _is_finite(loss)), None)
        first = stats.steps - len(losses)
        found = None
        if bad is not None:
            message = f"the loss is {losses[bad]} in step {first + bad + 1} (epoch {stats.epochs[-1].epoch + 1})"
            found = Culprit("loss", runner.optimizer.loss, message)
        elif self.locate:
            following = (runner.executor.state(), runner.optimizer.state())
            found = bad_parameter(following[0], stats.steps)
            self._snapshot = following if goes_on else None
        if found is None:
            return
        if snapshot is not None and len(steps) == len(losses) and runner.optimizer.ranks.size == 1:
            try:
                found = Replay(runner, snapshot, steps, first).search(bad) or found
            except Exception as error:  # noqa: BLE001 - the data set's or the framework's, asked for an explanation
                _logger.debug("The steps were not run again: %s", message_of(error))
        self._stop(found)

    def _stop(self, culprit: Culprit) -> None:
        self.culprit = culprit
        _logger.warning("The training is stopped: %s.", culprit.message)
        raise StopTraining


def _is_finite(value: float) -> bool:
    return value - value == 0
