"""Where the time of distributed steps goes, by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import MeasurementError
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics._distributed_training import distributed_optimizer, uncounted
from deep500.distributed.scaling.exchange_recorder import ExchangeRecorder
from deep500.distributed.time_split import TimeSplit
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.training.training_event import OptimizerEvent, RunnerEvent

if TYPE_CHECKING:
    from deep500.networks.graph_executor import GraphExecutor
    from deep500.training.statistics import TrainingStatistics
    from deep500.training.trainer import Trainer

__all__ = ["ExposedExchange"]


class ExposedExchange(RunnerEvent, OptimizerEvent, TestMetric):
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
        self._optimizer: DistributedOptimizer | None = None
        self._recorder: ExchangeRecorder | None = None

    @property
    def requires_outputs(self) -> bool:
        """False: it is recorded step by step."""
        return False

    def begin(self, inputs: Any) -> None:
        """Begin to record the steps.

        Args:
            inputs: The trainer, or its optimizer.

        Raises:
            MeasurementError: The training is not distributed, or its steps are recorded already.
        """
        self._optimizer = distributed_optimizer("ExposedExchange", inputs)
        self._recorder = ExchangeRecorder(self._optimizer).__enter__()

    def end(self, outputs: Any) -> None:
        """Bring the ranks' times together; a collective operation.

        Raises:
            MeasurementError: The run was not begun.
        """
        if self._recorder is None or self._optimizer is None:
            raise MeasurementError("ExposedExchange ends a run that was not begun; call begin before each run.")
        recorder, self._recorder = self._recorder, None
        recorder.__exit__()
        found = TimeSplit.gathered(recorder.steps, uncounted(self._optimizer))
        self.split.add(found)

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
