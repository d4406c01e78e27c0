"""The contract of a metric: a number with a unit, and which of two numbers is the better one."""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from deep500.core.registry import Registry

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["METRICS", "Direction", "MetricKind", "TestMetric"]

#: The metrics of this level, one file each in ``deep500/measure/metrics``. Training brings its own
#: (``deep500.training.catalogue.TRAINING_METRICS``); ``deep500.training.catalogue.metric_names`` lists both.
METRICS = Registry("metric", "deep500.measure.metrics")


class Direction(str, enum.Enum):
    """Which values of a metric are better."""

    HIGHER = "higher"
    LOWER = "lower"


class MetricKind(str, enum.Enum):
    """What a metric's values are, which decides how several of them may be averaged.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 3 and 4.
    """

    COST = "cost"  #: seconds, bytes, joules: arithmetic mean
    RATE = "rate"  #: samples per second: harmonic mean
    RATIO = "ratio"  #: speedups: not averaged
    SCORE = "score"  #: accuracies, errors: arithmetic mean


class TestMetric(abc.ABC):
    """Measures one number of a test: of an operator, a network, a training.

    A test calls :meth:`begin` and :meth:`end` around each run and :meth:`measure` once at the end. It works on the
    metric's :meth:`fresh` copy, so that a metric which a recipe names twice, or which is a default argument, starts
    empty each time.

    A subclass implements :meth:`measure` and says ``unit``, ``direction`` and ``kind``.

    Attributes:
        unit: Unit of the values, such as ``"s"`` or ``"%"``; empty for a pure number.
        direction: Which values are better.
        kind: What the values are.
        synchronize: Waits until the device has finished, set by the test that runs on one; a timing calls it before
            it reads the clock. ``None`` where there is nothing to wait for. A :meth:`fresh` copy has none.

    Example:
        >>> class FinalLoss(TestMetric):
        ...     direction = Direction.LOWER
        ...     def measure(self, inputs, outputs, reference_outputs=None):
        ...         return float(outputs["loss"])
        >>> FinalLoss().accepts(0.2, 0.25)
        True
    """

    __test__: ClassVar[bool] = False  # pytest would collect a class whose name starts with "Test"

    unit: str = ""
    direction: Direction = Direction.HIGHER
    kind: MetricKind = MetricKind.SCORE
    synchronize: Callable[[], None] | None = None

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, for :meth:`fresh`."""
        metric = super().__new__(cls)
        metric._arguments = (args, kwargs)
        return metric

    @property
    def name(self) -> str:
        """Name of the metric, by default that of its class."""
        return type(self).__name__

    @property
    def reruns(self) -> int:
        """Number of further runs of the test that are measured for this metric alone; 0 measures the test's own run.

        Timings ask for runs of their own, since other metrics would disturb them.
        """
        return 0

    @property
    def requires_inputs(self) -> bool:
        """Whether :meth:`begin` needs the inputs of the test."""
        return True

    @property
    def requires_outputs(self) -> bool:
        """Whether :meth:`end` needs the outputs of the test."""
        return True

    def begin(self, inputs: Any) -> None:
        """Called right before each run of the test.

        Args:
            inputs: The inputs of the run; ``None`` when :attr:`requires_inputs` is false.
        """

    def end(self, outputs: Any) -> None:
        """Called right after each run of the test.

        Args:
            outputs: The outputs of the run; ``None`` when :attr:`requires_outputs` is false.
        """

    @abc.abstractmethod
    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the value, after all runs; calling it again returns the same.

        Args:
            inputs: What the test was given (a training gives its trainer).
            outputs: What the test returned (a training returns its ``TrainingStatistics``).
            reference_outputs: What it should have returned, where the test knows it.
        """

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        """Return the value of :meth:`measure` with its unit, for people."""
        return f"{self.measure(inputs, outputs, reference_outputs):.6g} {self.unit}".rstrip()

    def fresh(self) -> Self:
        """Return a metric made from the same arguments that has measured nothing yet.

        Metrics among the arguments are made afresh too. Attributes that were set later are not taken over.
        """
        args, kwargs = self._arguments
        return type(self)(*map(_fresh, args), **{key: _fresh(value) for key, value in kwargs.items()})

    def accepts(self, value: float, acceptable: float) -> bool:
        """Whether a value is as good as the acceptable one, or better.

        Where higher is better ``value >= acceptable``, else ``value <= acceptable``. NaN is never accepted, and never
        makes a value acceptable.
        """
        if self.direction is Direction.HIGHER:
            return bool(float(value) >= float(acceptable))
        return bool(float(value) <= float(acceptable))

    def margin(self, value: float, acceptable: float) -> float:
        """Return by how much a value is better than the acceptable one, in the metric's unit; negative when worse.

        It is at least 0 exactly when :meth:`accepts` says yes, and NaN when one of the numbers is.
        """
        value, acceptable = float(value), float(acceptable)
        if value == acceptable:  # infinities too, whose difference is NaN
            return 0.0
        difference = value - acceptable if self.direction is Direction.HIGHER else acceptable - value
        return math.nan if math.isnan(value) or math.isnan(acceptable) else difference


def _fresh(argument: Any) -> Any:
    return argument.fresh() if isinstance(argument, TestMetric) else argument
