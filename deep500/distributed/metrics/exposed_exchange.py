"""Where the time of distributed steps goes, by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import MeasurementError
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics._distributed_training import DistributedTrainingMetric, uncounted
from deep500.distributed.scaling.exchange_recorder import ExchangeRecorder
from deep500.distributed.time_split import TimeSplit
from deep500.measure.metric import Direction, MetricKind
from deep500.training.training_event import OptimizerEvent, RunnerEvent

if TYPE_CHECKING:
    from deep500.networks.graph_executor import GraphExecutor
    from deep500.training.statistics import TrainingStatistics
    from deep500.training.trainer import Trainer

__all__ = ["ExposedExchange"]


class ExposedExchange(RunnerEvent, OptimizerEvent, DistributedTrainingMetric):
    """Seconds a step in which a rank waits for the exchange: the largest of the ranks' medians.

    What goes into it is recorded in :attr:`split`, which has the other parts and the intervals of each rank. Around a
    training each rank takes the times of its own steps; they come together at the end.

    Attributes:
        split: Times of the steps by rank.
    """

    unit = "s"
    direction = Direction.LOWER
    kind = MetricKind.COST

    def __init__(self, split: TimeSplit | None = None) -> None:
        """Measure a split that is recorded elsewhere; by default one of its own."""
        self.split = TimeSplit() if split is None else split
        self._recorder: ExchangeRecorder | None = None

    def _begun(self, optimizer: DistributedOptimizer) -> None:
        self._recorder = ExchangeRecorder(optimizer).__enter__()

    def _ended(self, optimizer: DistributedOptimizer) -> None:
        recorder, self._recorder = self._recorder, None
        assert recorder is not None  # of the begin
        recorder.__exit__()
        steps = recorder.steps
        self.split.add(optimizer.together(lambda: TimeSplit.gathered(steps, uncounted(optimizer)), changes=False))

    def before_optimizer_step(self, executor: GraphExecutor, inputs: Mapping[str, Any]) -> None:
        """Start the clock."""
        if self._recorder is not None:
            self._recorder.begin_step()

    def after_optimizer_step(self, executor: GraphExecutor, outputs: Mapping[str, Any], loss: Any) -> None:
        """Stop the clock when the device has finished."""
        if self._recorder is not None:
            if self.synchronize is not None:
                self.synchronize()
            self._recorder.end_step()

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Leave the communicators as they were, also where the training broke off."""
        if self._recorder is not None:
            self._recorder.__exit__()

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the seconds.

        Raises:
            MeasurementError: No step was recorded.
        """
        if not self.split.steps:
            raise MeasurementError("ExposedExchange was not measured: no step was recorded in its split.")
        return float(self.split.medians_s()[:, 2].max())
