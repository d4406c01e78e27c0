"""Any metric, measured around the drawing of minibatches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.measure.metric import TestMetric
from deep500.training.training_event import SamplerEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.training.sampler import Sampler

__all__ = ["SamplerEventMetric"]


class SamplerEventMetric(SamplerEvent, TestMetric):
    """Begins a metric before each minibatch is read, and ends it when it has been.

    For example the latency of a sampler within a training: ``SamplerEventMetric(WallclockTime(reruns=0))``. Validation
    minibatches count as well.

    Attributes:
        metric: The metric.
        unit: Its unit, as the following ones.
        direction: Which of its values are better.
        kind: What its values are.
    """

    def __init__(self, metric: TestMetric) -> None:
        """Wrap a metric.

        Raises:
            TrainingError: It is none.
        """
        if not isinstance(metric, TestMetric):
            raise TrainingError(f"SamplerEventMetric was given {shown(metric)}; accepted is a metric.")
        self.metric = metric.fresh()
        self.unit, self.direction, self.kind = metric.unit, metric.direction, metric.kind

    @property
    def name(self) -> str:
        """Name of the metric, and that it is the sampler's."""
        return f"{self.metric.name} of sampling"

    @property
    def reruns(self) -> int:
        """Number of further minibatches that the metric asks for."""
        return self.metric.reruns

    @property
    def requires_inputs(self) -> bool:
        """False: what it measures happens between the sampler's hooks."""
        return False

    @property
    def requires_outputs(self) -> bool:
        """False, as for the inputs."""
        return False

    def before_sampling(self, sampler: Sampler, minibatch_size: int) -> None:
        """Begin the metric."""
        self.metric.begin(minibatch_size if self.metric.requires_inputs else None)

    def after_sampling(self, sampler: Sampler, samples: Mapping[str, NDArray[Any]]) -> None:
        """End the metric."""
        self.metric.end(samples if self.metric.requires_outputs else None)

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return what the metric measured."""
        return self.metric.measure(inputs, outputs, reference_outputs)

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        """Return it with its unit, for people."""
        return self.metric.measure_summary(inputs, outputs, reference_outputs)
